package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

func Example() {
	server, err := redistest.Embed() // in your program: a Redis of yours
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := server.Client() // redis.NewClient with MaxRetries: -1, ContextTimeoutEnabled: true
	defer client.Close()

	ctx := context.Background()
	locker := redislock.New(client, redislock.Config{})
	lease, err := locker.Acquire(ctx, "order:42", locking.Options{TTL: 10 * time.Second, Wait: time.Second})
	if err != nil {
		panic(err)
	}
	work(lease.Context(), lease.Token())

	_, err = locker.Acquire(ctx, "order:42", locking.Options{})
	var held *locking.HeldError
	fmt.Println("held:", errors.As(err, &held) && held.Owner == lease.Owner())

	fmt.Println("released:", lease.Release(ctx) == nil)
	fmt.Println("why the context ended:", context.Cause(lease.Context()))
	// Output:
	// working with a token
	// held: true
	// released: true
	// why the context ended: lease released
}

// work sends the token with every write, so that whoever stores the order can
// refuse a write with a smaller one.
func work(ctx context.Context, token locking.Token) {
	if ctx.Err() == nil && token > 0 {
		fmt.Println("working with a token")
	}
}
