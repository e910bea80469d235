package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// stock sells from a number in Redis that is read, compared and written back.
type stock struct {
	client *redis.Client
	sold   atomic.Int64
	pause  func() // between reading and writing: where a slow machine pauses
}

func (s *stock) fill(ctx context.Context, n int) { s.client.Set(ctx, "stock:7", n, 0) }

func (s *stock) left(ctx context.Context) int {
	n, err := s.client.Get(ctx, "stock:7").Int()
	if err != nil {
		panic(err)
	}
	return n
}

func (s *stock) sell(ctx context.Context) {
	n := s.left(ctx)
	if n == 0 {
		return
	}
	if s.pause != nil {
		s.pause()
	}
	s.client.Set(ctx, "stock:7", n-1, 0)
	s.sold.Add(1)
}

// Two buyers want the last piece. The second one comes while the first stands
// still between reading and writing, and both get it.
func Example_oversold() {
	client, end := shop()
	defer end()
	ctx := context.Background()
	s := &stock{client: client}
	s.fill(ctx, 1)
	s.pause = func() {
		s.pause = nil
		s.sell(ctx) // the second buyer
	}
	s.sell(ctx)
	fmt.Println("sold", s.sold.Load(), "of 1")
	// Output:
	// sold 2 of 1
}

// The same with a lock: the second buyer gets the error that the first one holds the lock, comes
// again, and finds nothing left. Then ten buyers wait in line for three pieces.
func Example_stock() {
	client, end := shop()
	defer end()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := context.Background()
	s := &stock{client: client}
	buy := func(wait time.Duration) error {
		return locker.Do(ctx, "stock:7", locking.Options{Wait: wait}, func(ctx context.Context, _ *locking.Lease) error {
			s.sell(ctx)
			return nil
		})
	}

	s.fill(ctx, 1)
	s.pause = func() { fmt.Println("meanwhile:", errors.Is(buy(0), locking.ErrHeld)) }
	fmt.Println("first:", buy(0))
	fmt.Println("second:", buy(0))
	fmt.Println("sold", s.sold.Load(), "of 1, left", s.left(ctx))

	s.fill(ctx, 3)
	s.pause = nil
	s.sold.Store(0)
	var buyers sync.WaitGroup
	for range 10 {
		buyers.Go(func() { _ = buy(time.Minute) })
	}
	buyers.Wait()
	fmt.Println("sold", s.sold.Load(), "of 3, left", s.left(ctx))
	// Output:
	// meanwhile: true
	// first: <nil>
	// second: <nil>
	// sold 1 of 1, left 0
	// sold 3 of 3, left 0
}
