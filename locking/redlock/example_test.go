package redlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/locking/redlock"
)

// Three masters, each with a password and a database of its own.
func Example() {
	ctx := context.Background()
	var clients []redis.UniversalClient
	for i, password := range []string{"one", "two", "three"} {
		server, err := redistest.Embed() // in your program: a Redis of yours
		if err != nil {
			panic(err)
		}
		defer server.Close()
		server.Mini().RequireAuth(password)

		options := server.Options() // in your program: redis.Options with MaxRetries -1, ContextTimeoutEnabled true
		options.Addr = fmt.Sprintf("10.0.0.%d:6379", i+1)
		options.Password = password
		options.DB = i
		client := redis.NewClient(options)
		defer client.Close()
		clients = append(clients, client)
	}

	cfg := redlock.Config{MasterTimeout: 500 * time.Millisecond} // generous, for a test
	if err := redlock.Bootstrap(ctx, clients, cfg); err != nil { // new masters do not vote
		panic(err)
	}
	locker, err := redlock.New(clients, cfg)
	if err != nil {
		panic(err)
	}
	defer locker.Close() // before the clients
	lease, err := locker.Acquire(ctx, "order:42", locking.Options{Wait: time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println("valid:", lease.Valid(), "token:", lease.Token() > 0)
	fmt.Println("released:", lease.Release(ctx) == nil)

	_, err = redlock.New(clients[:2], cfg)
	fmt.Println(err)
	// Output:
	// valid: true token: true
	// released: true
	// lock: masters are 2; use an odd number, at least 3: an even number tolerates no more failures than one less
}
