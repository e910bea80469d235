//go:build !race

package schedtest

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// churns adds up what many seeds show.
type churns struct {
	next atomic.Uint64

	mu          sync.Mutex
	played      int
	ticks       map[string]int
	worst       map[string]time.Duration // lag by kind, and whether amid changes
	seen        Counters
	joined, out int
	failed      int
}

func (s *churns) work(t *testing.T) {
	for {
		seed := s.next.Add(1) - 1
		if seed >= *churnFirst+uint64(*churnSeeds) {
			return
		}
		ch := churnOf(seed)
		if s.add(t, ch, ch.play(t)) > 3 {
			return
		}
	}
}

// when names the ticks that are added up together.
func (ch *churn) when(since time.Duration) string {
	if ch.kind != still && ch.amid(since) {
		return ch.kind + ", amid changes"
	}
	return ch.kind + ", else"
}

func (s *churns) add(t *testing.T, ch *churn, r Result) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	s.seen.Add(r.Seen)
	s.joined, s.out = s.joined+ch.joined, s.out+ch.out
	for _, w := range r.Writes {
		if w.Phase == verify.Start && w.Trigger == "schedule" {
			what := ch.when(w.Tick.Sub(bubbleBegan))
			s.ticks[what]++
			s.worst[what] = max(s.worst[what], w.At.Sub(w.Tick))
		}
	}
	if len(r.Findings) > 0 {
		s.failed++
		t.Errorf("seed %d: %d findings, the first: %s\nreplay it: go test ./scheduler/schedtest -run 'TestChurn$' -v -churn.seed %d",
			ch.plan.Seed, len(r.Findings), r.Findings[0], ch.plan.Seed)
	}
	return s.failed
}

// bubbleBegan is when every bubble begins.
var bubbleBegan = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// turn is how long the second in rank waits for the first.
const turn = 50 * time.Millisecond

// Nodes come and go while 200 jobs tick each second, and no promise breaks. Where nodes join, no tick
// starts later than the latest of a cluster in which nothing happens, and a grace. One that leaves in order claims nothing
// more at once, and the others learn of it with their next beats: a tick that comes due before that is found by the
// first sweep behind the grace, in the turn of its node.
func TestChurn(t *testing.T) {
	if *churnSeed != 0 {
		ch := churnOf(*churnSeed)
		r := ch.play(t)
		t.Logf("%s\n%s", r, r.Seen)
		for _, f := range r.Findings {
			t.Error(f)
		}
		return
	}
	s := &churns{ticks: make(map[string]int), worst: make(map[string]time.Duration), seen: make(Counters)}
	s.next.Store(*churnFirst)
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	t.Logf("%d seeds in %s, %d failed; %d nodes joined, %d were out of the roster while they lived\n%s", s.played, time.Since(began).Round(time.Second), s.failed, s.joined, s.out, s.seen)
	for _, what := range slices.Sorted(maps.Keys(s.worst)) {
		t.Logf("%-22s %8d ticks, the latest %s after it was due", what, s.ticks[what], s.worst[what].Round(time.Millisecond))
	}
	if s.played >= churnEnough {
		s.judge(t)
	}
}

// defaultChurn is how many seeds TestChurn plays when nobody says.
const defaultChurn = 10

// churnCases is how many seeds each test of a single case plays.
const churnCases = 20

// churnEnough is how many seeds are held to the bounds, and to have shown everything.
const churnEnough = 10

func (s *churns) judge(t *testing.T) {
	cfg := churnOf(1).plan.withDefaults().Config
	for kind, more := range map[string]time.Duration{joining: cfg.Grace, orderly: cfg.Grace + cfg.SweepEvery + turn} {
		most := s.worst[still+", else"] + more
		if s.worst[kind+", amid changes"] > most {
			t.Errorf("%s: a tick waited %s, more than %s", kind, s.worst[kind+", amid changes"], most)
		}
	}
	if *churnFirst != 1 && s.played < 3*churnEnough {
		return // a few seeds need not show everything, but for the first ones
	}
	for _, what := range []string{"fault: crash", "fault: drain", "fault: pause", "fault: reset", "fault: drop request"} {
		if s.seen[what] == 0 {
			t.Errorf("nothing of this kind happened: %s", what)
		}
	}
	if s.joined == 0 || s.out == 0 || s.ticks[still+", else"] == 0 {
		t.Error("the plans are empty: see above")
	}
}

// The control: nodes that hardly sweep cannot keep P6, and the verifier says so.
func TestChurnFindsWhoWaitsTooLong(t *testing.T) {
	late := 0
	for seed := uint64(5); seed <= 25 && late == 0; seed += 5 {
		ch := churnOf(seed)
		ch.plan.Config.SweepEvery = 20 * time.Second
		for _, f := range ch.play(t).Findings {
			if f.Kind == verify.KindLate {
				late++
			}
		}
	}
	t.Logf("%d ticks are late", late)
	if late == 0 {
		t.Error("nothing is late though no node looks for what is late: the verifier, or the plan, sees nothing")
	}
}

// worksFor works for so long, or until it is told to stop.
func worksFor(d time.Duration) jobs.Func {
	return func(ctx context.Context, _ *jobs.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
