package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

// Benchmark measures the cost of locks in a store: of a lock without contention, of a lock that is
// handed over between contenders, and of the renewal of a hundred. With Store.Commands it reports
// the commands too.
func Benchmark(b *testing.B, open func(tb testing.TB) Store) {
	b.Run("acquire and release", func(b *testing.B) { benchUncontended(b, open(b)) })
	for _, n := range []int{2, 8} {
		b.Run(fmt.Sprintf("hand-over among %d", n), func(b *testing.B) { benchHandOver(b, open(b), n) })
	}
	b.Run("renewal of 100", func(b *testing.B) { benchRenew(b, open(b)) })
}

// countCommands starts counting; the function it returns reports commands per operation.
func countCommands(b *testing.B, s Store) (report func()) {
	if s.Commands == nil {
		return func() {}
	}
	before := s.Commands()
	return func() { b.ReportMetric(float64(s.Commands()-before)/float64(b.N), "commands/op") }
}

func benchUncontended(b *testing.B, s Store) {
	d, _ := s.Connect(b)
	wantFree(b, d, "to warm up")
	l := locker(b, d)
	report := countCommands(b, s)
	for b.Loop() {
		lease, err := l.Acquire(b.Context(), name, locking.Options{TTL: long})
		noError(b, "acquire", err)
		noError(b, "release", lease.Release(b.Context()))
	}
	report()
}

// handOvers is the shared state of a benchmark's contenders.
type handOvers struct {
	mu       sync.Mutex
	left     int
	released time.Time       // when the last holder began to give it back; zero: no holder yet
	idle     []time.Duration // from then until the next had it
}

// took records a handover, and reports whether another one follows.
func (h *handOvers) took() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.released.IsZero() {
		h.idle = append(h.idle, time.Since(h.released))
	}
	h.left--
	h.released = time.Now()
	return h.left > 0
}

func benchHandOver(b *testing.B, s Store, contenders int) {
	h := &handOvers{left: b.N}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	lockers := make([]*locking.Locker, contenders)
	for i := range lockers {
		d, _ := s.Connect(b)
		wantFree(b, d, "to warm up")
		lockers[i] = locker(b, d)
	}
	report := countCommands(b, s)
	b.ResetTimer()
	for _, l := range lockers {
		wg.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, name, locking.Options{TTL: long, Wait: long})
				if err != nil {
					if ctx.Err() == nil {
						b.Errorf("a contender: %v", err)
						cancel()
					}
					return
				}
				if !h.took() {
					cancel()
				}
				if err := lease.Release(b.Context()); err != nil {
					b.Errorf("release: %v", err)
					cancel()
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	report()
	if n := len(h.idle); n > 0 {
		slices.Sort(h.idle)
		b.ReportMetric(float64(h.idle[n/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(h.idle[n*99/100].Microseconds()), "p99-µs")
	}
}

func benchRenew(b *testing.B, s Store) {
	d, _ := s.Connect(b)
	batch := make([]locking.Renewal, 100)
	for i := range batch {
		r := request("a", long)
		r.Name = fmt.Sprintf("%s/%d", name, i)
		batch[i] = renewal(mustAsk(b, d, r), long)
	}
	renew(b, d, batch...)
	report := countCommands(b, s)
	for b.Loop() {
		got, err := d.Renew(b.Context(), batch)
		noError(b, "renew", err)
		if i := slices.IndexFunc(got, func(a locking.RenewAnswer) bool { return a != locking.Renewed }); i >= 0 {
			b.Fatalf("renewal %d of %d: %v", i, len(got), got[i])
		}
	}
	report()
}
