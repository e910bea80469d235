package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// clockSteps are the steps of Redis' clock that the tests take back.
var clockSteps = []time.Duration{time.Hour, -time.Hour, 10 * 24 * time.Hour}

// stepped is the result for a caller that does not believe a step of Redis' clock.
type stepped struct {
	*rig

	by    time.Duration
	truth int64 // what the caller believes, ms
}

// step lets Redis' clock step. From then on the rig's ledger has an idea of Redis' time that does
// not step.
func (r *rig) step(t *testing.T, by time.Duration) *stepped {
	t.Helper()
	s := &stepped{rig: r, by: by, truth: r.now}
	r.pass(t, by)
	r.led = r.led.Believing(func(context.Context) time.Time { return time.UnixMilli(s.truth) })
	return s
}

// back takes the step back.
func (s *stepped) back(t *testing.T) {
	t.Helper()
	s.pass(t, -s.by)
}

var millis = regexp.MustCompile(`\d{13}`)

// untrue are the stored instants near to the clock that is not believed.
func (s *stepped) untrue(t *testing.T) (found []string) {
	t.Helper()
	for key, lines := range dump(t, s.client) {
		for line := range strings.SplitSeq(lines, "\n") {
			for _, digits := range millis.FindAllString(line, -1) {
				at := must(strconv.ParseInt(digits, 10, 64))
				if !strings.HasPrefix(key, "test:") && max(at-s.now, s.now-at) < min(s.by.Abs(), oneDay).Milliseconds()/2 {
					found = append(found, fmt.Sprintf("%s: %s in %s", key, digits, line))
				}
			}
		}
	}
	return found
}

// timeless are the scripts that read Redis' clock and need no idea of it from their caller, with
// the reason.
var timeless = map[string]string{
	"advance": "when a step of a move was taken is shown, and compared with nothing", "reserve": "the same",
	"incarnate": "a node that joins waits until some time after it, but not longer than that time",
	"begin":     "is refused by the clock, see TestPromote", "renew": "see TestLeaseOfAClockTakenBack",
}

// TestStoredTimes: whatever a script stores by Redis' clock, a clock that the caller does not
// believe does not get into it; or the script is refused. A script that is not played here has to
// be added.
func TestStoredTimes(t *testing.T) {
	for _, by := range clockSteps {
		t.Run(by.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				called := make(map[any]bool)
				r.client.AddHook(watcher(func(args []any) {
					if len(args) > 1 {
						called[word(args[1])] = true
					}
				}))
				playStoredTimes(t, r, by)
				for _, s := range scripts {
					name, now := s.Name(), s
					if at := ships[name]; at != nil {
						now = (*at).Script
					}
					if strings.Contains(s.Source(), "= clock(") && !called[now.Hash()] && !called[now.Source()] && timeless[name] == "" {
						t.Errorf("script %s reads the clock and was not called: what does it store?", name)
					}
				}
			})
		})
	}
}

// word is an argument of a command, which may be given by its place.
func word(arg any) any {
	if at, is := arg.(*string); is {
		return *at
	}
	return arg
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func playStoredTimes(t *testing.T, r *rig, by time.Duration) {
	ctx := t.Context()
	for _, job := range []string{"plain", "queued", "failing", "returned", "asked", "paused", "resumed", "cancelled", "split", "renewed", "lapsed", "filled"} {
		r.create(t, job)
	}
	r.follower(t, "plain", "next")
	r.joins(t, "both", "any", "plain", "queued")
	r.pass(t, 1500*time.Millisecond)
	r.pause(t, "resumed", Pause{Author: "ann", Reason: "why"})
	for _, job := range []string{"plain", "queued", "failing", "returned", "cancelled", "renewed", "lapsed"} {
		r.want(t, Granted, with(jobs.OverlapQueue, tickClaim(job, job, 1)))
	}
	r.want(t, Opened, sharded(2, tickClaim("split", "split", 1)))
	r.want(t, Granted, shardClaim("split", "split", 0))
	r.runOne(t, "asked", 1)
	ended := r.rows(t, "asked")[0].Run

	s := r.step(t, by)
	l := r.led
	for _, c := range []Claim{tickClaim("asked", "late", 2), pendingClaim("asked", "x")} {
		if _, err := l.Claim(ctx, node, s.truth, []Claim{c}); !errors.Is(err, ErrClock) {
			t.Errorf("claim %s: %v", c.Run, err)
		}
	}
	refusedByClock(t, s)
	report := func(job, run string, outcome jobs.Outcome, change func(*Report)) {
		t.Helper()
		rep := Report{Job: job, Run: run, Outcome: outcome, Started: s.truth, Ended: s.truth, Tries: 1}
		change(&rep)
		if got := must(l.Settle(ctx, []Report{rep})); got[0] != Settled {
			t.Errorf("settle %s: %s", run, got[0])
		}
	}
	report("plain", "plain", jobs.OutcomeSucceeded, func(*Report) {})
	report("queued", "queued", jobs.OutcomeFailed, func(*Report) {})
	report("failing", "failing", jobs.OutcomeFailed, func(r *Report) { r.Rerun, r.RetryIn = true, time.Second })
	report("split", ShardRun("split", 0), jobs.OutcomeFailed, func(*Report) {})
	must(l.Unclaim(ctx, []Return{{Job: "returned", Run: "returned"}}))
	must(l.Cancel(ctx, "cancelled", "cancelled", "ann", "why"))
	must(l.Cancel(ctx, "split", ShardRun("split", 1), "ann", "why"))
	must(l.Trigger(ctx, "asked", Trigger{Unique: "key"}))
	must(l.Rerun(ctx, "asked", ended))
	noError(t, l.Pause(ctx, "paused", Pause{Author: "ann", Reason: "why"}))
	noError(t, l.Resume(ctx, "resumed"))
	r.relayAll(t)
	noError(t, l.GiveUpJoins(ctx, "both"))
	b := Backfill{ID: "fill", Job: "filled", From: noon - 10_000, To: noon, Parallel: 1, Total: 11, Author: "ann"}
	must(l.Backfill(ctx, b, "d-second"))
	all, _, err := l.Backfills(ctx, "filled")
	noError(t, err)
	_, fed, err := l.Feed(ctx, all[0], "d-second", 1, []int64{noon - 10_000, noon - 9_000})
	noError(t, err)
	if fed != BackfillPut {
		t.Errorf("fed: %s", fed)
	}
	noError(t, l.Audit(ctx, Action{Author: "ann", Name: "test"}))
	must(l.ChangeCatalog(ctx, []CatalogChange{{Job: "stored", Definition: "d"}, {Job: "dropped", Definition: "d"}}))
	must(l.ChangeCatalog(ctx, []CatalogChange{{Job: "dropped"}}))
	noError(t, l.Announce(ctx, "blue", "1", l.Chunks(map[string]string{"plain": "d-second"})[0]))
	if found := s.untrue(t); len(found) > 0 {
		t.Errorf("stored by a clock that nobody believes:\n%s", strings.Join(found, "\n"))
	}
}

// refusedByClock makes the calls that decide by the time: each is refused.
func refusedByClock(t *testing.T, s *stepped) {
	t.Helper()
	ctx, l := t.Context(), s.led
	calls := map[string]func() error{
		"define": func() error {
			_, err := l.Define(ctx, s.truth, []Definition{{Job: "new", Digest: "d", Text: []byte("{}"), Cursor: noon}})
			return err
		},
		"reap": func() error {
			_, err := l.Reap(ctx, s.truth, "", []Run{{Job: "lapsed", ID: "lapsed"}})
			return err
		},
		"rewind": func() error {
			_, err := l.Rewind(ctx, s.truth, Rewind{Job: "asked", Digest: "d-second", From: noon + 2000, To: noon + 1000})
			return err
		},
		"reassert": func() error {
			_, err := l.Reassert(ctx, s.truth, []Assertion{of(*s.open(t, "lapsed"))})
			return err
		},
		"recall": func() error {
			_, err := l.Recall(ctx, s.truth, []KnownCursor{{Job: "asked", Digest: "d-second", Cursor: noon}})
			return err
		},
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if err := calls[name](); !errors.Is(err, ErrClock) {
			t.Errorf("%s: %v, want ErrClock", name, err)
		}
	}
}

// TestLeaseOfAClockTakenBack: a lease that was renewed by a clock which is taken back lasts until
// its 'until' for a node with that clock, and its ttl at most after that.
func TestLeaseOfAClockTakenBack(t *testing.T) {
	for _, by := range clockSteps {
		t.Run(by.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Second)
				r.want(t, Granted, tickClaim("a", "a-1", 1))
				s := r.step(t, by)
				r.renew(t, "a", "a-1", true)
				if l := r.open(t, "a"); l.Until != r.now+ttl.Milliseconds() {
					t.Errorf("the lease ends at %d, want %d: by Redis' clock, for nodes that believe it", l.Until, r.now+ttl.Milliseconds())
				}
				if by > 0 {
					if got := must(r.led.Reap(t.Context(), r.now, "", []Run{{Job: "a", ID: "a-1", Beat: 1}})); got[0] != Alive {
						t.Errorf("reaped by a node that believes the clock: %s", got[0])
					}
				}
				s.back(t)
				for range 3 { // the node of the run is dead: the lease ends a ttl after the first look at the latest
					r.pass(t, ttl+time.Second)
					for _, lapsed := range must(r.led.NewScanner().Scan(t.Context(), r.now, 0)).Lapsed {
						must(r.led.Reap(t.Context(), r.now, "", []Run{lapsed}))
					}
				}
				r.tale(t, "a", "abandoned 1")
			})
		})
	}
}

// TestBusyUntilNowAtMost: where a busy window was stored by a clock that was taken back, the job
// goes on with its next tick.
func TestBusyUntilNowAtMost(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapQueue, jobs.OverlapReplace} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Second)
				r.want(t, Granted, with(o, tickClaim("a", "a-1", 1)))
				r.pass(t, time.Hour) // by a caller without an idea, as versions before this one
				r.settle(t, Settled, "a", "a-1", jobs.OutcomeSucceeded)
				r.pass(t, time.Second-time.Hour)
				r.want(t, Granted, with(o, tickClaim("a", "a-2", 2)))
				r.pass(t, time.Hour)
				r.settle(t, Settled, "a", "a-2", jobs.OutcomeSucceeded)
				r.pass(t, 4*time.Second-time.Hour)
				r.want(t, Stale, with(o, tickClaim("a", "a-3", 3))) // all of them came due in that time: the latest runs
				r.want(t, Granted, with(o, passing("a", "a-6", 6, overlapped(3, 5))))
				r.sound(t)
			})
		})
	}
}

// TestHistoryOfAClockTakenBack: a wrong clock trims no history.
func TestHistoryOfAClockTakenBack(t *testing.T) {
	cfg := oneConfig
	cfg.KeepFor = time.Hour
	onBoth(t, cfg, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 30*time.Second)
		for s := int64(1); s <= 5; s++ {
			r.runOne(t, "a", s)
		}
		r.want(t, Granted, tickClaim("a", "plain", 6))
		s := r.step(t, 10*24*time.Hour)
		must(s.led.Settle(t.Context(), []Report{{Job: "a", Run: "plain", Outcome: jobs.OutcomeSucceeded, Started: s.truth, Ended: s.truth, Tries: 1}}))
		if rows := s.rows(t, "a"); len(rows) != 6 {
			t.Errorf("%d rows are left, want 6", len(rows))
		}
	})
}
