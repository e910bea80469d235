//go:build unix

package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// counter counts the commands of clients, and the answers that are lists.
type counter struct{ n, lists atomic.Int64 }

func (*counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		err := next(ctx, cmd)
		if script, is := cmd.(*redis.Cmd); is {
			if _, list := script.Val().([]any); list {
				c.lists.Add(1)
			}
		}
		return err
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func BenchmarkLock(b *testing.B) {
	s := standalone(redistest.Start(b))
	locktest.Benchmark(b, func(testing.TB) locktest.Store { return s.store() })
}

// freeRaw deletes a key that has this value: the release of the plainest lock.
var freeRaw = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// BenchmarkAgainstRaw takes turns: a plain SET NX PX with a deleting script, a lock of
// the driver, a lock of a Locker. Each has
// the same two round trips, over loopback as it is and to a server farther away.
func BenchmarkAgainstRaw(b *testing.B) {
	o := redistest.ClientOptions(redistest.Start(b).Addr())
	for _, f := range []far{0, far(200 * time.Microsecond)} {
		b.Run(fmt.Sprint("rtt+", time.Duration(f)), func(b *testing.B) {
			c := redis.NewClient(o)
			defer c.Close()
			c.AddHook(f)
			againstRaw(b, c)
		})
	}
}

// far keeps each answer back for so long, as a network does. It looks at the clock all the time: a timer
// would take a millisecond.
type far time.Duration

func (far) DialHook(next redis.DialHook) redis.DialHook { return next }

func (far) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

func (f far) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		for answered := time.Now(); time.Since(answered) < time.Duration(f); {
			continue
		}
		return err
	}
}

func againstRaw(b *testing.B, c *redis.Client) {
	d := redislock.NewDriver(c, redislock.Config{})
	l := redislock.New(c, redislock.Config{})
	defer l.Close()
	ctx, owner := context.Background(), 0
	ways := []struct {
		name string
		once func() error
		took []time.Duration
	}{
		{name: "raw", once: func() error {
			if err := c.Process(ctx, redis.NewStatusCmd(ctx, "set", "raw", "owner", "nx", "px", 15000)); err != nil {
				return err
			}
			return freeRaw.Run(ctx, c, []string{"raw"}, "owner").Err()
		}},
		{name: "driver", once: func() error {
			owner++
			name := fmt.Sprint(b.Name(), owner) // an owner has a lock once
			if _, err := d.Acquire(ctx, locking.Request{Name: "a", Owner: name, TTL: 15 * time.Second}); err != nil {
				return err
			}
			return d.Release(ctx, "a", name)
		}},
		{name: "locker", once: func() error {
			lease, err := l.Acquire(ctx, "b", locking.Options{})
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		}},
	}
	for b.Loop() {
		for i := range ways {
			start := time.Now()
			if err := ways[i].once(); err != nil {
				b.Fatalf("%s: %v", ways[i].name, err)
			}
			ways[i].took = append(ways[i].took, time.Since(start))
		}
	}
	var raw time.Duration
	for i, w := range ways { // medians: a pause of the machine falls into any of them
		slices.Sort(w.took)
		half := w.took[len(w.took)/2]
		b.ReportMetric(float64(half.Nanoseconds())/1000, w.name+"-µs")
		if i == 0 {
			raw = half
			continue
		}
		b.ReportMetric(float64(half)/float64(raw), w.name+"/raw")
	}
}

// BenchmarkShares acquires and releases beside so many other holders: they are all read for a grant.
func BenchmarkShares(b *testing.B) {
	for _, share := range []locking.Share{{Permits: locking.MaxPermits}, {Mode: locking.Read}} {
		for _, others := range []int{0, 2, 9, 99, 999} {
			b.Run(fmt.Sprintf("mode %s beside %d", share.Mode, others), func(b *testing.B) {
				d := redislock.NewDriver(redistest.Start(b).Client(b), redislock.Config{}).Share(share)
				acquire := func(owner string) {
					if _, err := d.Acquire(b.Context(), locking.Request{Name: "a", Owner: owner, TTL: time.Hour}); err != nil {
						b.Fatal(err)
					}
				}
				for i := range others {
					acquire(fmt.Sprint("other ", i))
				}
				for i := 0; b.Loop(); i++ {
					owner := fmt.Sprint("owner ", i)
					acquire(owner)
					if err := d.Release(b.Context(), "a", owner); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
