package locking_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
)

// memory is a store that never refuses: just enough to show a Keeper.
type memory struct{}

func (memory) Renew(_ context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers := make([]locking.RenewAnswer, len(batch))
	for i := range answers {
		answers[i] = locking.Renewed
	}
	return answers, nil
}

// A Keeper renews leases of any store. The clock is read before the request, so that the lease ends
// here before it ends at the store.
func ExampleKeeper_Hold() {
	keeper := locking.NewKeeper(memory{}, locking.KeeperConfig{})

	asked, slept := time.Now(), locking.Slept()
	// ... call the store, which answers with a token ...
	lease := keeper.Hold(context.Background(), locking.Grant{
		Name: "report", Owner: "run-1", Token: 42, TTL: 15 * time.Second, Asked: asked, Slept: slept,
	})

	fmt.Println("valid:", lease.Valid(), "token:", lease.Token())
	fmt.Println("deadline after:", lease.Deadline().Sub(asked))
	lease.Close()
	fmt.Println(context.Cause(lease.Context()))
	// Output:
	// valid: true token: 42
	// deadline after: 13.85s
	// lease released
}

func ExampleHeldError() {
	err := fmt.Errorf("rotate the logs: %w", &locking.HeldError{Name: "logs", Owner: "node-2", Until: 9 * time.Second})

	var held *locking.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Owner, "for", held.Until)
	}
	fmt.Println(errors.Is(err, locking.ErrHeld), errors.Is(err, locking.ErrUnreachable))
	// Output:
	// held by node-2 for 9s
	// true false
}
