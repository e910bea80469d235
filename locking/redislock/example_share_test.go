package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// At most two exports read the database at once, on however many machines. Each has a lease and a token of its own.
func Example_semaphore() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	two := locking.Options{Permits: 2}
	first, err := locker.Acquire(ctx, "exports", two)
	if err != nil {
		panic(err)
	}
	second, err := locker.Acquire(ctx, "exports", two)
	if err != nil {
		panic(err)
	}
	fmt.Println("the second has the larger token:", second.Token() > first.Token())
	_, err = locker.Try(ctx, "exports", two)
	fmt.Println("a third is refused:", errors.Is(err, locking.ErrHeld))
	_, err = locker.Try(ctx, "exports", locking.Options{Permits: 5})
	fmt.Println(err)

	if err := first.Release(ctx); err != nil {
		panic(err)
	}
	third, err := locker.Try(ctx, "exports", two)
	fmt.Println("after a release it is granted:", err == nil)
	if err := errors.Join(second.Release(ctx), third.Release(ctx)); err != nil {
		panic(err)
	}
	// Output:
	// the second has the larger token: true
	// a third is refused: true
	// lock "exports": Options.Permits asks for a semaphore of 5 permits, and somebody holds or waits for the name as a semaphore of 2 permits; all contenders must say the same
	// after a release it is granted: true
}

// Many readers serve the price list while no writer changes it. A change waits for the present
// readers, and later readers wait for the change.
func Example_readWrite() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	read := locking.Options{Mode: locking.Read, Wait: 10 * time.Second}
	write := locking.Options{Mode: locking.Write, Wait: 10 * time.Second}
	reader, err := locker.Acquire(ctx, "prices", read)
	if err != nil {
		panic(err)
	}
	changed := make(chan error)
	go func() {
		changed <- locker.Do(ctx, "prices", write, func(context.Context, *locking.Lease) error {
			fmt.Println("prices are changed")
			return nil
		})
	}()
	waiting := func() bool {
		o, err := locker.Owner(ctx, "prices")
		return err == nil && o.Waiters == 1
	}
	for !waiting() {
		<-time.After(time.Millisecond) // in your program there is nothing to wait for
	}
	_, err = locker.Try(ctx, "prices", read)
	fmt.Println("a reader that comes after the writer waits:", errors.Is(err, locking.ErrHeld))
	fmt.Println("the first reader still reads:", reader.Valid())
	if err := reader.Release(ctx); err != nil {
		panic(err)
	}
	if err := <-changed; err != nil {
		panic(err)
	}
	// Output:
	// a reader that comes after the writer waits: true
	// the first reader still reads: true
	// prices are changed
}

// A transfer holds both accounts, or none. Two transfers between the same accounts never wait for each other.
func Example_acquireAll() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()

	both, err := locker.AcquireAll(ctx, []string{"account:7", "account:3"}, locking.Options{Wait: time.Second})
	if err != nil {
		panic(err)
	}
	var names []string
	for _, lease := range both.Leases() { // each has the token for writes to its account
		names = append(names, lease.Name())
	}
	fmt.Println("holds", strings.Join(names, " and "), slices.IsSorted(names))

	_, err = locker.AcquireAll(ctx, []string{"account:1", "account:3"}, locking.Options{})
	fmt.Println("another one is refused:", errors.Is(err, locking.ErrHeld))
	free, err := locker.Owner(ctx, "account:1")
	fmt.Println("and holds nothing:", err == nil && !free.Held())
	if err := both.Release(ctx); err != nil {
		panic(err)
	}
	fmt.Println(context.Cause(both.Context()))
	// Output:
	// holds account:3 and account:7 true
	// another one is refused: true
	// and holds nothing: true
	// lease released
}
