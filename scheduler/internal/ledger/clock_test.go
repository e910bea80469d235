package ledger_test

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
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
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
				for _, s := range ledger.Scripts() {
					if strings.Contains(s.Source(), "= clock(") && !called[s.Hash()] && !called[s.Source()] && timeless[s.Name()] == "" {
						t.Errorf("script %s reads the clock and was not called: what does it store?", s.Name())
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
	r.pause(t, "resumed", ledger.Pause{Author: "ann", Reason: "why"})
	for _, job := range []string{"plain", "queued", "failing", "returned", "cancelled", "renewed", "lapsed"} {
		r.want(t, claim.Granted, with(jobs.OverlapQueue, tickClaim(job, job, 1)))
	}
	r.want(t, claim.Opened, sharded(2, tickClaim("split", "split", 1)))
	r.want(t, claim.Granted, shardClaim("split", "split", 0))
	r.runOne(t, "asked", 1)
	ended := r.rows(t, "asked")[0].Run

	s := r.step(t, by)
	l := r.led
	for _, c := range []claim.Claim{tickClaim("asked", "late", 2), pendingClaim("asked", "x")} {
		if _, err := claim.Send(ctx, l, node, s.truth, []claim.Claim{c}); !errors.Is(err, ledger.ErrClock) {
			t.Errorf("claim %s: %v", c.Run, err)
		}
	}
	refusedByClock(t, s)
	report := func(job, run string, outcome jobs.Outcome, change func(*settle.Report)) {
		t.Helper()
		rep := settle.Report{Job: job, Run: run, Outcome: outcome, Started: s.truth, Ended: s.truth, Tries: 1}
		change(&rep)
		if got := must(settle.Settle(ctx, l, []settle.Report{rep})); got[0] != settle.Settled {
			t.Errorf("settle %s: %s", run, got[0])
		}
	}
	report("plain", "plain", jobs.OutcomeSucceeded, func(*settle.Report) {})
	report("queued", "queued", jobs.OutcomeFailed, func(*settle.Report) {})
	report("failing", "failing", jobs.OutcomeFailed, func(r *settle.Report) { r.Rerun, r.RetryIn = true, time.Second })
	report("split", claim.ShardRun("split", 0), jobs.OutcomeFailed, func(*settle.Report) {})
	must(settle.Unclaim(ctx, l, []settle.Return{{Job: "returned", Run: "returned"}}))
	must(operate.Cancel(ctx, l, "cancelled", "cancelled", "ann", "why"))
	must(operate.Cancel(ctx, l, "split", claim.ShardRun("split", 1), "ann", "why"))
	must(operate.Trigger(ctx, l, "asked", operate.TriggerRequest{Unique: "key"}))
	must(operate.Rerun(ctx, l, "asked", ended))
	noError(t, operate.Pause(ctx, l, "paused", ledger.Pause{Author: "ann", Reason: "why"}))
	noError(t, operate.Resume(ctx, l, "resumed"))
	r.relayAll(t)
	noError(t, follow.GiveUpJoins(ctx, l, "both"))
	b := ledger.Backfill{ID: "fill", Job: "filled", From: noon - 10_000, To: noon, Parallel: 1, Total: 11, Author: "ann"}
	must(backfill.Begin(ctx, l, b, "d-second"))
	all, _, err := backfill.List(ctx, l, "filled")
	noError(t, err)
	_, fed, err := backfill.Feed(ctx, l, all[0], "d-second", 1, []int64{noon - 10_000, noon - 9_000})
	noError(t, err)
	if fed != backfill.Put {
		t.Errorf("fed: %s", fed)
	}
	noError(t, operate.Audit(ctx, l, operate.Action{Author: "ann", Name: "test"}))
	must(catalog.Apply(ctx, l, []catalog.Change{{Job: "stored", Definition: "d"}, {Job: "dropped", Definition: "d"}}))
	must(catalog.Apply(ctx, l, []catalog.Change{{Job: "dropped"}}))
	noError(t, define.Announce(ctx, l, "blue", "1", define.Chunks(l, map[string]string{"plain": "d-second"})[0]))
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
			_, err := define.Define(ctx, l, s.truth, []define.Definition{{Job: "new", Digest: "d", Text: []byte("{}"), Cursor: noon}})
			return err
		},
		"reap": func() error {
			_, err := settle.Reap(ctx, l, s.truth, "", []ledger.Run{{Job: "lapsed", ID: "lapsed"}})
			return err
		},
		"rewind": func() error {
			_, err := operate.Rewind(ctx, l, s.truth, operate.RewindRequest{Job: "asked", Digest: "d-second", From: noon + 2000, To: noon + 1000})
			return err
		},
		"reassert": func() error {
			_, err := epoch.Reassert(ctx, l, s.truth, []epoch.Assertion{of(*s.open(t, "lapsed"))})
			return err
		},
		"recall": func() error {
			_, err := epoch.Recall(ctx, l, s.truth, []epoch.KnownCursor{{Job: "asked", Digest: "d-second", Cursor: noon}})
			return err
		},
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if err := calls[name](); !errors.Is(err, ledger.ErrClock) {
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
				r.want(t, claim.Granted, tickClaim("a", "a-1", 1))
				s := r.step(t, by)
				r.renew(t, "a", "a-1", true)
				if l := r.open(t, "a"); l.Until != r.now+ttl.Milliseconds() {
					t.Errorf("the lease ends at %d, want %d: by Redis' clock, for nodes that believe it", l.Until, r.now+ttl.Milliseconds())
				}
				if by > 0 {
					if got := must(settle.Reap(t.Context(), r.led, r.now, "", []ledger.Run{{Job: "a", ID: "a-1", Beat: 1}})); got[0] != settle.Alive {
						t.Errorf("reaped by a node that believes the clock: %s", got[0])
					}
				}
				s.back(t)
				for range 3 { // the node of the run is dead: the lease ends a ttl after the first look at the latest
					r.pass(t, ttl+time.Second)
					for _, lapsed := range must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Lapsed {
						must(settle.Reap(t.Context(), r.led, r.now, "", []ledger.Run{lapsed}))
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
				r.want(t, claim.Granted, with(o, tickClaim("a", "a-1", 1)))
				r.pass(t, time.Hour) // by a caller without an idea, as versions before this one
				r.settle(t, settle.Settled, "a", "a-1", jobs.OutcomeSucceeded)
				r.pass(t, time.Second-time.Hour)
				r.want(t, claim.Granted, with(o, tickClaim("a", "a-2", 2)))
				r.pass(t, time.Hour)
				r.settle(t, settle.Settled, "a", "a-2", jobs.OutcomeSucceeded)
				r.pass(t, 4*time.Second-time.Hour)
				r.want(t, claim.Stale, with(o, tickClaim("a", "a-3", 3))) // all of them came due in that time: the latest runs
				r.want(t, claim.Granted, with(o, passing("a", "a-6", 6, overlapped(3, 5))))
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
		r.want(t, claim.Granted, tickClaim("a", "plain", 6))
		s := r.step(t, 10*24*time.Hour)
		must(settle.Settle(t.Context(), s.led, []settle.Report{{Job: "a", Run: "plain", Outcome: jobs.OutcomeSucceeded, Started: s.truth, Ended: s.truth, Tries: 1}}))
		if rows := s.rows(t, "a"); len(rows) != 6 {
			t.Errorf("%d rows are left, want 6", len(rows))
		}
	})
}
