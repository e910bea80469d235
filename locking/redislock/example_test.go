package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

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

// work sends the token with every write, so that the store of the order can
// refuse a write with a smaller one.
func work(ctx context.Context, token locking.Token) {
	if ctx.Err() == nil && token > 0 {
		fmt.Println("working with a token")
	}
}

// shop starts a Redis for one example; end stops it.
func shop() (client *redis.Client, end func()) {
	server, err := redistest.Embed() // in your program: a Redis of yours
	if err != nil {
		panic(err)
	}
	client = server.Client()
	return client, func() { _ = client.Close(); server.Close() }
}

// A second request for an order, while the first one is at work, is refused at
// once: the customer pressed the button twice. Another order is not held up.
func Example_order() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	request := func(order string, pay func()) string {
		err := locker.Do(ctx, "order:"+order, locking.Options{Holder: "checkout"}, func(context.Context, *locking.Lease) error {
			pay()
			return nil
		})
		var held *locking.HeldError
		switch {
		case errors.As(err, &held):
			return "409: " + held.Holder + " is at it"
		case err != nil:
			return "503: " + err.Error() // whether it is held is unknown
		}
		return "200"
	}
	nothing := func() {}
	fmt.Println("first:", request("42", func() {
		fmt.Println("second:", request("42", nothing))
		fmt.Println("another order:", request("43", nothing))
	}))
	fmt.Println("later:", request("42", nothing))
	// Output:
	// second: 409: checkout is at it
	// another order: 200
	// first: 200
	// later: 200
}

// Ids that only grow: the token of a lease is such an id. Tokens grow from holder to holder, also
// when Redis has lost all its data, and have gaps. A counter in Redis starts again. Ids without
// gaps, for example of invoices, belong into the invoices' database, counted in the same
// transaction.
func Example_increasingID() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	var ids, counts []int64
	next := func() {
		err := locker.Do(ctx, "ids", locking.Options{Wait: time.Minute}, func(ctx context.Context, lease *locking.Lease) error {
			ids = append(ids, lease.Token())
			counts = append(counts, client.Incr(ctx, "counter").Val())
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	next()
	next()
	client.FlushAll(ctx)
	next()
	fmt.Println("tokens grow:", ids[0] < ids[1] && ids[1] < ids[2])
	fmt.Println("counter:", counts)
	// Output:
	// tokens grow: true
	// counter: [1 2 1]
}

// An item is queued once, however many producers add it at the same time: the holder of the lock
// looks for the item, and adds a missing one. For a queue in this same Redis, a set or a script
// does the same without a lock; the lock is for a queue that cannot look and add in one step.
func Example_enqueueOnce() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	enqueue := func(item string) error {
		return locker.Do(ctx, "queue:"+item, locking.Options{Wait: time.Minute}, func(ctx context.Context, _ *locking.Lease) error {
			queued, err := client.LRange(ctx, "queue", 0, -1).Result()
			if err != nil || slices.Contains(queued, item) {
				return err
			}
			return client.RPush(ctx, "queue", item).Err()
		})
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := enqueue("mail 1"); err != nil {
				panic(err)
			}
		})
	}
	all.Wait()
	fmt.Println(client.LRange(ctx, "queue", 0, -1).Val())
	// Output:
	// [mail 1]
}

// Do takes the lock, runs a function under it and gives it back. When the lock is lost meanwhile,
// the function's context ends, and Do returns an error.
func Example_do() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	err := locker.Do(ctx, "report", locking.Options{Holder: "host 1"}, func(_ context.Context, lease *locking.Lease) error {
		o, err := locker.Owner(ctx, "report")
		fmt.Println("held by", o.Holder, "with our token:", o.Token == lease.Token())
		return err
	})
	fmt.Println(err)

	err = locker.Do(ctx, "report", locking.Options{}, func(ctx context.Context, lease *locking.Lease) error {
		if err := locker.Revoke(ctx, "report", lease.Token()); err != nil { // an operator wants it back
			return err
		}
		_ = lease.Extend(ctx) // the next renewal finds out
		<-ctx.Done()
		return nil
	})
	fmt.Println("lost:", errors.Is(err, locking.ErrLost))
	// Output:
	// held by host 1 with our token: true
	// <nil>
	// lost: true
}

// A process that ends gives back all its locks, so that no waiter waits for a ttl.
func Example_releaseAll() {
	client, end := shop()
	defer end()
	ctx := context.Background()
	leaving, staying := redislock.New(client, redislock.Config{}), redislock.New(client, redislock.Config{})
	defer staying.Close()

	for _, name := range []string{"a", "b", "c"} {
		if _, err := leaving.Acquire(ctx, name, locking.Options{}); err != nil {
			panic(err)
		}
	}
	fmt.Println(leaving.ReleaseAll(ctx)) // then Close, which leaves leases alone
	leaving.Close()
	for _, name := range []string{"a", "b", "c"} {
		lease, err := staying.Try(ctx, name, locking.Options{})
		if err != nil {
			panic(err)
		}
		fmt.Println(name, "is free:", lease.Release(ctx) == nil)
	}
	// Output:
	// <nil>
	// a is free: true
	// b is free: true
	// c is free: true
}

// A function that takes its lock by itself is called by a holder of the same lock. With
// Options.Reenter the function finds the hold in its context.
func Example_reenter() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()

	book := func(ctx context.Context, o locking.Options) (token locking.Token, err error) {
		err = locker.Do(ctx, "account:1", o, func(_ context.Context, lease *locking.Lease) error {
			token = lease.Token()
			return nil
		})
		return token, err
	}
	err := locker.Do(context.Background(), "account:1", locking.Options{}, func(ctx context.Context, outer *locking.Lease) error {
		token, err := book(ctx, locking.Options{Reenter: true})
		fmt.Println("the same hold:", token == outer.Token(), err)
		fmt.Println("still held:", outer.Valid())
		_, err = book(ctx, locking.Options{})
		fmt.Println("without Reenter:", errors.Is(err, locking.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// the same hold: true <nil>
	// still held: true
	// without Reenter: true
	// <nil>
}
