package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// A deleted or lost record is missed once: nodes may report its run in another epoch. Then the run
// holds its job no longer, because no node could ever end that run.
func TestLostRecordFreesItsJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		lose := func(run string) {
			t.Helper()
			if n := r.client.Del(t.Context(), r.led.Keys[0].Runs).Val(); n != 1 {
				t.Fatalf("%d keys deleted", n)
			}
			for _, missed := range []bool{true, false} {
				_, err := settle.Renew(t.Context(), r.led, []locking.Renewal{{Name: "a", Owner: run, TTL: ttl}})
				if errors.Is(err, ledger.ErrServer) != missed {
					t.Errorf("renewed without its record: %v", err)
				}
			}
			must(r.led.Restore(t.Context(), ""))
		}
		r.pass(t, time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		lose("r1")
		r.pass(t, time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r2", 2))
		pending := pendingClaim("a", must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "hand"})))
		r.want(t, claim.JobBusy, pending)
		lose("r2")
		r.want(t, claim.Granted, pending)
		lose("hand")
		r.pass(t, time.Second)
		other := pendingClaim("a", must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "other"})))
		both := must(claim.Send(t.Context(), r.led, node, r.now, []claim.Claim{tickClaim("a", "r3", 3), other}))
		if both[0].Verdict != claim.Granted || both[1].Verdict != claim.JobBusy {
			t.Errorf("of two runs in a batch got %s and %s; want one granted", both[0].Verdict, both[1].Verdict)
		}
	})
}

func TestClaimIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		other := tickClaim("a", "r", 1)
		other.Digest = "d-other"
		r.want(t, claim.Early, tickClaim("a", "r", 1))
		r.pass(t, 499*time.Millisecond) // 501 ms before it is due
		r.want(t, claim.Early, tickClaim("a", "r", 1))
		r.pass(t, 5500*time.Millisecond)
		r.want(t, claim.Unknown, tickClaim("nobody", "r", 1))
		if a := r.want(t, claim.Stale, tickClaim("a", "r", 2)); a.Cursor != noon+1000 {
			t.Errorf("moved to %d", a.Cursor)
		}
		if a := r.want(t, claim.Superseded, other); a.Detail != "d-second" {
			t.Errorf("superseded by %q", a.Detail)
		}
		for _, off := range []int64{1001, -1001} {
			_, err := claim.Send(t.Context(), r.led, node, r.now+off, []claim.Claim{tickClaim("a", "r", 1)})
			var clock *ledger.ClockError
			if !errors.Is(err, ledger.ErrClock) || !errors.As(err, &clock) || clock.Redis.UnixMilli() != r.now || clock.Believed.UnixMilli() != r.now+off {
				t.Errorf("off by %d ms: %v", off, err)
			}
			if _, err := settle.Reap(t.Context(), r.led, r.now+off, r.epoch(), []ledger.Run{{Job: "a", ID: "r"}}); !errors.Is(err, ledger.ErrClock) {
				t.Errorf("reap off by %d ms: %v", off, err)
			}
			if _, err := define.Define(t.Context(), r.led, r.now+off, []define.Definition{{Job: "b"}}); !errors.Is(err, ledger.ErrClock) {
				t.Errorf("define off by %d ms: %v", off, err)
			}
		}
		if rows := r.rows(t, "a"); len(rows) != 0 || r.entry(t, "a").Cursor != noon+1000 {
			t.Errorf("something was recorded: %+v, %+v", rows, r.entry(t, "a"))
		}
		if _, err := claim.Send(t.Context(), r.led, node, r.now+1000, []claim.Claim{tickClaim("a", "r", 1)}); err != nil {
			t.Errorf("off by the tolerated second: %v", err)
		}
	})
}

// A batch is as good as its items one after another, also when it is full, and when a job or a
// report stands in it twice.
func TestBatch(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		var claims []claim.Claim
		for i := range ledger.BatchMax {
			job := fmt.Sprintf("job-%03d", i)
			r.create(t, job)
			claims = append(claims, tickClaim(job, "run-"+job, 1))
		}
		r.pass(t, 5*time.Second)
		const free = ledger.BatchMax - 2 // as many are idle
		must(operate.Trigger(t.Context(), r.led, "job-000", operate.TriggerRequest{Run: "by hand"}))
		claims[free], claims[free+1] = tickClaim("job-001", "other", 2), pendingClaim("job-000", "by hand") // both held
		for i, a := range must(claim.Send(t.Context(), r.led, node, r.now, claims)) {
			if (a.Verdict == claim.Granted) != (i < free) || i >= free && a.Verdict != claim.JobBusy {
				t.Errorf("item %d: %+v", i, a)
			}
		}
		reports := each(claims, func(c claim.Claim) settle.Report {
			return settle.Report{Job: c.Job, Run: c.Run, Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now}
		})
		reports[free], reports[free+1] = reports[0], reports[1] // each once more
		reports[free+1].Outcome = jobs.OutcomeFailed
		for i, w := range must(settle.Settle(t.Context(), r.led, reports)) {
			if (w == settle.Settled) != (i <= free) {
				t.Errorf("report %d: %s", i, w)
			}
		}
		r.tale(t, "job-000", "succeeded 1")
		r.sound(t)
	})
}

// TestPassesLeadToTheTick: each pass begins where the previous pass ended, and the tick comes
// behind the last. Any other claim is refused and changes nothing.
func TestPassesLeadToTheTick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Hour)
		good := passing("a", "r", 8, late(1, 3), late(4, 7))
		for name, change := range map[string]func(c *claim.Claim){
			"a gap before the first":   func(c *claim.Claim) { c.Skipped[0].First += 1000 },
			"a gap between":            func(c *claim.Claim) { c.Skipped[1].First += 1000 },
			"an overlap between":       func(c *claim.Claim) { c.Skipped[1].First -= 1000 },
			"a gap before the tick":    func(c *claim.Claim) { c.Tick, c.Next = c.Tick+1000, c.Next+1000 },
			"the tick among them":      func(c *claim.Claim) { c.Tick -= 1000 },
			"an end before the first":  func(c *claim.Claim) { c.Skipped[0].Last = noon },
			"no way on":                func(c *claim.Claim) { c.Skipped[1].Next = c.Skipped[1].Last },
			"the end of the schedule":  func(c *claim.Claim) { c.Skipped[0].Next = 0 },
			"on to the tick":           func(c *claim.Claim) { c.Next = c.Tick },
			"nothing at all":           func(c *claim.Claim) { c.Skipped, c.Tick, c.Next = nil, 0, c.From },
			"nothing and on":           func(c *claim.Claim) { c.Skipped, c.Tick, c.Next = nil, 0, noon+2000 },
			"no tick, and further":     func(c *claim.Claim) { c.Tick, c.Next = 0, c.Tick+1000 },
			"paused without a pause":   func(c *claim.Claim) { c.Skipped[1].Outcome = jobs.OutcomePaused },
			"skipped and nothing busy": func(c *claim.Claim) { c.Skipped[1].Outcome = jobs.OutcomeSkipped },
			"another cursor":           func(c *claim.Claim) { c.From += 1000 },
		} {
			bad := good
			bad.Skipped = slices.Clone(good.Skipped)
			change(&bad)
			if a := r.claim(t, bad); a.Verdict != claim.Stale || a.Cursor != noon+1000 {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if e := r.entry(t, "a"); e.Cursor != noon+1000 || len(r.rows(t, "a")) > 0 {
			t.Fatalf("something was recorded: %+v", e)
		}
		r.complete(t, jobs.OutcomeSucceeded, good)
		r.tale(t, "a", "missed 1-7 x7 late", "succeeded 8")
		r.sound(t)
	})
}

// A claim that is repeated after its answer was lost gets the same answer while its run goes on.
func TestClaimAskedAgain(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 2*time.Second)
		first := r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		r.pass(t, time.Second)
		again := r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		if again.Token != first.Token || again.Left != ttl-time.Second {
			t.Errorf("first %+v, again %+v", first, again)
		}
		r.pass(t, time.Hour)
		if again = r.want(t, claim.Granted, tickClaim("a", "r1", 1)); again.Left != 0 {
			t.Errorf("a lapsed lease has %s left", again.Left)
		}
		others := must(claim.Send(t.Context(), r.led, claim.Claimer{ID: "n2"}, r.now, []claim.Claim{tickClaim("a", "r1", 1)}))
		if others[0].Verdict != claim.Stale {
			t.Errorf("another node is answered %+v", others[0])
		}
		ask := tickClaim("a", "r1", 1)
		ask.From = 0 // a mere question
		r.want(t, claim.Granted, ask)
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, claim.Stale, tickClaim("a", "r1", 1))
		r.want(t, claim.Stale, ask)
		r.sound(t)
	})
}

// TestLeaseBeginsShort: a lease lasts five seconds, or three times max_skew, until it is renewed,
// and then as long as its ttl.
func TestLeaseBeginsShort(t *testing.T) {
	for _, c := range []struct{ skew, ttl, first time.Duration }{
		{time.Second, time.Minute, 5 * time.Second},
		{time.Second, 4 * time.Second, 4 * time.Second},
		{4 * time.Second, time.Minute, 12 * time.Second},
	} {
		onBoth(t, ledger.Config{Partitions: 1, MaxSkew: c.skew}, func(t *testing.T, r *rig) {
			r.create(t, "a")
			r.pass(t, time.Minute)
			request := tickClaim("a", "r1", 1)
			request.TTL = c.ttl
			lasts := func() time.Duration {
				return millisOf(must(query.InFlight(t.Context(), r.led, "a"))[0].Until - r.now)
			}
			a := r.want(t, claim.Granted, request)
			if got := lasts(); got != c.first || a.Left != c.first || claim.FirstLease(r.led, c.ttl) != c.first {
				t.Errorf("%+v: granted for %s, answered %s, FirstLease %s", c, got, a.Left, claim.FirstLease(r.led, c.ttl))
			}
			must(settle.Renew(t.Context(), r.led, []locking.Renewal{{Name: "a", Owner: "r1", Token: a.Token, TTL: c.ttl}}))
			if got := lasts(); got != c.ttl {
				t.Errorf("%+v: renewed for %s", c, got)
			}
		})
	}
}

// TestClaimAhead: a tick is granted half a second before it is due, with a lease that counts from
// then. Passes and overlap are decided when the tick is due.
func TestClaimAhead(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "held")
		r.pass(t, 500*time.Millisecond)
		first := tickClaim("a", "r1", 1)
		if a := r.want(t, claim.Granted, first); a.Left != first.TTL+500*time.Millisecond {
			t.Errorf("its lease lasts %s, want it to count from the tick", a.Left)
		}
		r.pass(t, 500*time.Millisecond)
		r.want(t, claim.Granted, tickClaim("held", "r2", 1))
		r.pass(t, 600*time.Millisecond)
		ahead := tickClaim("held", "r3", 2)
		if a := r.want(t, claim.JobBusy, ahead); a.Detail != "r2" {
			t.Errorf("held by %q", a.Detail)
		}
		r.want(t, claim.Early, passing("a", "r4", 0, late(2, 2)))
		r.pass(t, 400*time.Millisecond)
		r.want(t, claim.Skipped, ahead)
	})
}

// A job has as many ticks as its bound allows: refused, skipped and repeated claims do not count.
// The claim after the last tick ends the job, whatever that claim passes, and again after a rewind.
func TestMaxRuns(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		bounded := func(run string, at int64, bound int) claim.Claim {
			c := tickClaim("a", run, at)
			c.MaxRuns = bound
			return c
		}
		r.pass(t, time.Second)
		r.want(t, claim.Granted, bounded("r1", 1, 2))
		r.want(t, claim.Granted, bounded("r1", 1, 2)) // its answer was lost
		if n := r.entry(t, "a").Ran; n != 1 {
			t.Errorf("%d ticks are counted", n)
		}
		r.pass(t, time.Second)
		r.want(t, claim.Skipped, bounded("r2", 2, 2))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.pass(t, time.Second)
		r.want(t, claim.Granted, bounded("r3", 3, 2))
		r.settle(t, settle.Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.want(t, claim.Early, bounded("r4", 4, 2)) // it ends when the next tick is due, and not before
		r.pass(t, 2*time.Second)
		late := bounded("r5", 5, 2)
		late.From, late.Skipped = noon+4000, []ledger.SkippedRange{{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: noon + 4000, Last: noon + 4000, Count: 1, Next: noon + 5000}}
		if a := r.want(t, claim.RecordedOnly, late); a.Cursor != 0 || a.Detail != ledger.ReasonMaxRuns {
			t.Errorf("answered %+v", a)
		}
		e, rows := r.entry(t, "a"), r.rows(t, "a")
		if e.Cursor != 0 || e.Last != noon+3000 || e.Counts[jobs.OutcomeMissed] != 0 || e.Ran != 2 {
			t.Errorf("the entry is %+v", e)
		}
		if end := rows[len(rows)-1]; end.Outcome != jobs.OutcomeSuperseded || end.Reason != ledger.ReasonMaxRuns || end.Count != 0 || end.Prev != noon+4000 || end.Next != 0 {
			t.Errorf("the last row is %+v", end)
		}
		r.want(t, claim.Stale, bounded("r6", 4, 2))
		if n := len(r.rows(t, "a")); n != len(rows) {
			t.Errorf("%d rows, then %d", len(rows), n)
		}
	})
}

// TestClaimIsConfirmed: a grant on too few replicas is answered as unconfirmed, also when it is
// repeated over a connection that wrote nothing, and no more once the replicas have it.
func TestClaimIsConfirmed(t *testing.T) {
	server, replicas := redistest.StartReplicas(t, 2)
	open := func() *ledger.Ledger {
		return must(ledger.Join(t.Context(), server.Client(t), ledger.Config{Namespace: "c", Partitions: 1})).Confirming(2)
	}
	l := open()
	now := func() int64 {
		at, _, err := l.Time(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	request := func(l *ledger.Ledger, i int) claim.Answer {
		t.Helper()
		job, at := fmt.Sprint("job-", i), now()-1000
		defined := must(define.Define(t.Context(), l, at+1000, []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: at}}))
		c := claim.Claim{Job: job, Digest: "d-second", Run: "run-" + job, TTL: time.Minute, From: defined[0].Cursor, Tick: defined[0].Cursor, Next: defined[0].Cursor + 3600_000}
		got := must(claim.Send(t.Context(), l, node, now(), []claim.Claim{c}))[0]
		if got.Verdict != claim.Granted {
			t.Fatalf("%s: %+v", job, got)
		}
		return got
	}
	want := func(what string, got claim.Answer, confirmed bool) {
		t.Helper()
		if (got.Unconfirmed == nil) != confirmed || !confirmed && !errors.Is(got.Unconfirmed, locking.ErrUnreachable) {
			t.Errorf("%s: %v; want confirmed %v", what, got.Unconfirmed, confirmed)
		}
		if err := claim.Confirmed(t.Context(), l, 0); (err == nil) != confirmed {
			t.Errorf("%s: a probe says %v; want confirmed %v", what, err, confirmed)
		}
	}
	if err := l.Client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	want("both replicas follow", request(l, 1), true)
	if err := replicas[0].Pause(); err != nil {
		t.Fatal(err)
	}
	first := request(l, 2)
	want("one of two replicas follows", first, false)
	again := request(open(), 2)
	want("the same claim again, over another connection", again, false)
	if again.Token != first.Token {
		t.Errorf("it was granted anew: %+v, then %+v", first, again)
	}
	if err := replicas[0].Resume(); err != nil {
		t.Fatal(err)
	}
	want("both replicas follow again", request(l, 2), true)
	if got := must(claim.Send(t.Context(), l.Confirming(0), node, now(), []claim.Claim{{Job: "job-1", Digest: "d-second", Run: "r", TTL: time.Minute, From: 1, Tick: 1, Next: 2}})); got[0].Unconfirmed != nil {
		t.Errorf("nobody wants to wait, but %v", got[0].Unconfirmed)
	}
	if left := must(query.UnknownKeys(t.Context(), l)); len(left) > 0 {
		t.Errorf("keys that this version has no use for: %v", left)
	}
}
