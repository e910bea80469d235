package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// token is what a holder shows to whoever stores its writes.
type token func(tb testing.TB, m *machine) int64

// counted is recipe i: INCR beside the lock.
func counted(tb testing.TB, m *machine) int64 {
	n, err := m.client.Incr(tb.Context(), recipeKey+":token").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// granted is the token of a lease.
func granted(tb testing.TB, m *machine) int64 {
	h := m.must(tb)
	defer m.mustRelease(tb, h)
	return h.(*locking.Lease).Token()
}

// i. INCR for a fencing token.
func TestRecipeIncr(t *testing.T) {
	failover := func(e *redistest.Embedded, was redistest.Snapshot) {
		e.Restore(was)
		e.SetRunID("of the replica")
	}
	flush := func(e *redistest.Embedded, _ redistest.Snapshot) { e.Mini().FlushAll() }
	for name, loss := range map[string]func(e *redistest.Embedded, was redistest.Snapshot){"failover": failover, "FLUSHALL": flush} {
		t.Run(name, func(t *testing.T) {
			for way, tt := range map[string]struct {
				next token
				want string
			}{
				"the recipe":   {counted, "new holder refused, late holder accepted"},
				"this library": {granted, "new holder accepted, late holder refused"},
			} {
				t.Run(way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if got := tokensAreLost(t, tt.next, loss); got != tt.want {
							t.Errorf("%s; want %s", got, tt.want)
						}
					})
				})
			}
		})
	}
}

// tokensAreLost: of six grants the store forgets the last three, or all; the next
// holder and the one before both write to a store that refuses smaller tokens.
func tokensAreLost(tb testing.TB, next token, loss func(e *redistest.Embedded, was redistest.Snapshot)) string {
	server := embedded(tb)
	m := newMachine(tb, server, "a", notKept)
	var was redistest.Snapshot
	var late, largest int64
	write := func(token int64) string {
		if token < largest {
			return "refused"
		}
		largest = token
		return "accepted"
	}
	for i := range 6 {
		if i == 3 {
			was = server.Snapshot()
		}
		late = next(tb, m)
		write(late)
		<-time.After(time.Second)
	}
	loss(server, was)
	first := write(next(tb, m))
	return fmt.Sprintf("new holder %s, late holder %s", first, write(late))
}

// j. A lock on each node for each tick of a cron, given back when the job is done.
// A lock of this library, used so, is no better: what is wanted is that somebody
// remembers the tick. The scheduler does; a lease in the name of the tick does it
// for as long as its ttl.
func TestRecipeCron(t *testing.T) {
	nameless := func(int) string { return recipeName }
	perTick := func(tick int) string { return fmt.Sprint("report, tick ", tick) }
	leave := func(_ context.Context, h holding) error { h.(*locking.Lease).Close(); return nil }
	for name, tt := range map[string]struct {
		recipe recipe
		lock   func(tick int) string
		end    func(ctx context.Context, h holding) error
		want   string
	}{
		"the recipe":                    {setPXScript, nameless, releases, "3 ticks, 6 runs"},
		"the recipe with this library":  {kept, nameless, releases, "3 ticks, 6 runs"},
		"a lease for the tick, kept on": {notKept, perTick, leave, "3 ticks, 3 runs"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := twoNodes(t, tt.recipe, tt.lock, tt.end); got != tt.want {
					t.Errorf("%s; want %s", got, tt.want)
				}
			})
		})
	}
}

func releases(ctx context.Context, h holding) error { return h.Release(ctx) }

// twoNodes: both have the job each minute; the clock of b is 2 s behind, and the
// job takes 100 ms.
func twoNodes(tb testing.TB, r recipe, lock func(tick int) string, end func(ctx context.Context, h holding) error) string {
	server := embedded(tb)
	a, b := newMachine(tb, server, "a", r), newMachine(tb, server, "b", r)
	b.skew = -2 * time.Second
	start := time.Now().Add(time.Minute)
	runs := 0
	const ticks = 3
	for tick := range ticks {
		due := start.Add(time.Duration(tick) * time.Minute)
		for _, m := range []*machine{a, b} {
			<-time.After(due.Sub(m.now()))
			m.lock = lock(tick)
			h, ok := m.tries(tb)
			if !ok {
				continue
			}
			runs++
			<-time.After(100 * time.Millisecond)
			if err := end(tb.Context(), h); err != nil {
				tb.Error(err)
			}
		}
	}
	return fmt.Sprintf("%d ticks, %d runs", ticks, runs)
}
