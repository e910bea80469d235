//go:build unix

package zklock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

// One lock in ZooKeeper, for a function that at most one process of all may run.
func Example() {
	client := zklock.NewClient([]string{"zoo1:2181", "zoo2:2181", "zoo3:2181"}, zklock.ClientConfig{
		Auth: []zklock.Auth{{Scheme: "digest", Credentials: []byte("locks:secret")}},
	})
	defer client.Close()
	locks := zklock.New(client, zklock.Config{Root: "/billing/locks"})
	defer locks.Close()

	err := locks.Do(context.Background(), "invoice:42", locking.Options{TTL: 10 * time.Second, Wait: time.Minute},
		func(ctx context.Context, lease *locking.Lease) error {
			return charge(ctx, lease.Token()) // the database rejects a token below the last one
		})
	if err != nil {
		fmt.Println("not charged:", err)
	}
}

func charge(context.Context, locking.Token) error { return nil }
