//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// fewSlots is how many runs the node of these tests carries, which is as many as it has jobs at the master that is going to be away.
const fewSlots = 10

// narrow is a Cluster with one node that has few slots.
type narrow struct {
	*apart
	going, most  int            // how many functions run, and ran at once at most
	granted, ran map[string]int // how often a tick was granted and begun, by job and tick
	full         chan struct{}  // while it is open, and is not nil, runs elsewhere do not end
}

// startNarrow starts it. Runs at the master that is going to be away last for a stint.
func startNarrow(ctx context.Context, t *testing.T) *narrow {
	t.Helper()
	a := &narrow{apart: onApart(ctx, t, false), granted: make(map[string]int), ran: make(map[string]int)}
	all := jobs.NewRegistry()
	for i := range fewSlots {
		there, elsewhere := a.name(ctx, t, fmt.Sprint("there-", i), true), a.name(ctx, t, fmt.Sprint("elsewhere-", i), false)
		a.there, a.elsewhere = append(a.there, there), append(a.elsewhere, elsewhere)
		all.MustAdd(jobs.Job{Name: there, Schedule: "@every 1s", Func: func(ctx context.Context, run *jobs.Run) error {
			return a.run(ctx, run, time.After(stint))
		}})
		all.MustAdd(jobs.Job{Name: elsewhere, Schedule: "@every 1s", Func: func(ctx context.Context, run *jobs.Run) error {
			return a.run(ctx, run, nil)
		}})
	}
	client := a.n1.client(t, a.cluster, a.away)
	hooks := scheduler.Hooks{Claimed: func(r scheduler.RunEvent) {
		a.locked(func() { a.granted[fmt.Sprint(r.Job, " ", r.Tick.Unix())]++ })
	}}
	runNode(t, client, all, scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: "n1", MaxRunning: fewSlots, FailoverHold: time.Second, Hooks: &hooks})
	return a
}

// locked does something under the lock.
func (a *narrow) locked(do func()) {
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	do()
}

// run is what all functions do: until is when they end, nil is at once, unless they are to keep their slots.
func (a *narrow) run(ctx context.Context, run *jobs.Run, until <-chan time.Time) error {
	_ = a.seen.note(ctx, run)
	var full chan struct{}
	a.locked(func() {
		a.ran[fmt.Sprint(run.Job(), " ", run.Tick().Unix())]++
		a.going++
		a.most = max(a.most, a.going)
		full = a.full
	})
	defer a.locked(func() { a.going-- })
	if until != nil {
		select {
		case <-until:
		case <-ctx.Done():
		}
	} else if full != nil {
		select {
		case <-full:
		case <-ctx.Done():
		}
	}
	return nil
}

// TestSilentMasterTakesNoSlots has a node whose slots are all taken by what a silent master of a Cluster does not answer: claims of
// its jobs, or the ends of their runs. Jobs of the other masters go on, and never more runs at once than the node has slots.
func TestSilentMasterTakesNoSlots(t *testing.T) {
	t.Parallel()
	for name, past := range map[string]time.Duration{"claims": time.Second - 20*time.Millisecond, "ends of runs": stint / 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := startNarrow(ctx, t)
			cut := until(ctx, t, time.Now().Add(4*time.Second).Truncate(time.Second).Add(past))
			a.n1.away.Cut()
			over := until(ctx, t, cut.Add(6*time.Second))
			a.n1.away.Heal()
			until(ctx, t, over.Add(5*time.Second))
			t.Log("the latest elsewhere:", a.seen.check(t, a.elsewhere, cut, over, 2*time.Second))
			a.locked(func() {
				if a.most > fewSlots {
					t.Errorf("%d runs at once on a node with %d slots", a.most, fewSlots)
				}
			})
		})
	}
}

// TestLentSlotsAreTaken has claims granted whose answers are lost, and their slots taken by others before the answers are heard. The
// runs are handed back then, and begun when there is a slot for them, each once.
func TestLentSlotsAreTaken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := startNarrow(ctx, t)
	tick := until(ctx, t, time.Now().Add(4*time.Second).Truncate(time.Second).Add(-20*time.Millisecond)).Unix() + 1
	a.n1.away.CutReplies()
	until(ctx, t, time.Unix(tick, 0).Add(stint))
	full := make(chan struct{})
	a.locked(func() { a.full = full })
	until(ctx, t, time.Unix(tick+3, 0))
	a.locked(func() {
		if a.going != fewSlots {
			t.Errorf("%d runs hold the slots that were lent, want all %d", a.going, fewSlots)
		}
	})
	a.n1.away.Heal()
	until(ctx, t, time.Unix(tick+5, 0))
	a.locked(func() { a.full = nil })
	close(full)
	until(ctx, t, time.Unix(tick+12, 0))

	a.locked(func() {
		if a.most > fewSlots {
			t.Errorf("%d runs at once on a node with %d slots", a.most, fewSlots)
		}
		back := 0
		for _, job := range a.there {
			if a.granted[fmt.Sprint(job, " ", tick)] > 1 && a.ran[fmt.Sprint(job, " ", tick)] == 1 {
				back++
			}
		}
		for run, times := range a.ran {
			if times != 1 {
				t.Errorf("%s was begun %d times", run, times)
			}
		}
		if t.Log(back, "runs were handed back"); back == 0 {
			t.Error("no run was handed back and begun later")
		}
	})
}
