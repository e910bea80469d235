package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// A service keeps the largest token of each order, and refuses a request of a former holder that
// has not noticed the loss of the order's lock.
func Example_http() {
	orders := &fence.Handler{
		Store:    fence.NewMemory(0),
		Resource: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") },
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "saved")
		}),
	}
	server := httptest.NewServer(orders)
	defer server.Close()

	client := &http.Client{Transport: &fence.Transport{}}
	save := func(token locking.Token) error {
		ctx := fence.WithToken(context.Background(), token) // with a lease at hand: fence.WithLease(lease)
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/order:42", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return fence.Refusal(resp)
	}
	fmt.Println("new holder:", save(34))
	fmt.Println("late holder:", save(33))
	// Output:
	// new holder: <nil>
	// late holder: fence "order:42": stale token 33: the guard has seen 34; another holder has the lock, so stop. If you have acquired it just now, release it and acquire it again with Options.After = 34
}

// A refusal has the token that a fresh holder needs to go on.
func ExampleStaleError() {
	err := fmt.Errorf("save the order: %w", &fence.StaleError{Fence: "order:42", Token: 33, Max: 34})

	var stale *fence.StaleError
	if errors.As(err, &stale) {
		fmt.Println("acquire again with", locking.Options{After: stale.Max}.After)
	}
	fmt.Println(errors.Is(err, fence.ErrStale))
	// Output:
	// acquire again with 34
	// true
}
