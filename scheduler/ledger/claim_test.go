package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// A record that somebody deleted, or that Redis dropped, holds its job no longer: nobody could ever end that run.
func TestLostRecordFreesItsJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		lose := func() {
			t.Helper()
			if n := r.client.Del(t.Context(), r.led.keys[0].runs).Val(); n != 1 {
				t.Fatalf("%d keys deleted", n)
			}
		}
		r.pass(t, time.Second)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		lose()
		r.pass(t, time.Second)
		r.want(t, Granted, tickClaim("a", "r2", 2))
		pending := pendingClaim("a", must(r.led.Trigger(t.Context(), "a", Trigger{Run: "hand"})))
		r.want(t, Held, pending)
		lose()
		r.want(t, Granted, pending)
		lose()
		r.pass(t, time.Second)
		other := pendingClaim("a", must(r.led.Trigger(t.Context(), "a", Trigger{Run: "other"})))
		both := must(r.led.Claim(t.Context(), node, r.now, []Claim{tickClaim("a", "r3", 3), other}))
		if both[0].Verdict != Granted || both[1].Verdict != Held {
			t.Errorf("of two runs in a batch got %s and %s; want one granted", both[0].Verdict, both[1].Verdict)
		}
	})
}

func TestClaimIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		other := tickClaim("a", "r", 1)
		other.Digest = "d-other"
		r.want(t, Early, tickClaim("a", "r", 1))
		r.pass(t, 999*time.Millisecond)
		r.want(t, Early, tickClaim("a", "r", 1))
		r.pass(t, 5*time.Second)
		r.want(t, Unknown, tickClaim("nobody", "r", 1))
		if a := r.want(t, Moved, tickClaim("a", "r", 2)); a.Cursor != noon+1000 {
			t.Errorf("moved to %d", a.Cursor)
		}
		if a := r.want(t, Superseded, other); a.Detail != "d-second" {
			t.Errorf("superseded by %q", a.Detail)
		}
		for _, off := range []int64{1001, -1001} {
			_, err := r.led.Claim(t.Context(), node, r.now+off, []Claim{tickClaim("a", "r", 1)})
			var clock *ClockError
			if !errors.Is(err, ErrClock) || !errors.As(err, &clock) || clock.Redis.UnixMilli() != r.now || clock.Believed.UnixMilli() != r.now+off {
				t.Errorf("off by %d ms: %v", off, err)
			}
			if _, err := r.led.Reap(t.Context(), r.now+off, r.identity, []Lease{{Job: "a", Run: "r"}}); !errors.Is(err, ErrClock) {
				t.Errorf("reap off by %d ms: %v", off, err)
			}
			if _, err := r.led.Define(t.Context(), r.now+off, []Definition{{Job: "b"}}); !errors.Is(err, ErrClock) {
				t.Errorf("define off by %d ms: %v", off, err)
			}
		}
		if rows := r.rows(t, "a"); len(rows) != 0 || r.entry(t, "a").Cursor != noon+1000 {
			t.Errorf("something was recorded: %+v, %+v", rows, r.entry(t, "a"))
		}
		if _, err := r.led.Claim(t.Context(), node, r.now+1000, []Claim{tickClaim("a", "r", 1)}); err != nil {
			t.Errorf("off by the tolerated second: %v", err)
		}
	})
}

func TestClaimAskedAgain(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 2*time.Second)
		first := r.want(t, Granted, tickClaim("a", "r1", 1))
		r.pass(t, time.Second)
		again := r.want(t, Granted, tickClaim("a", "r1", 1))
		if again.Token != first.Token || again.Left != ttl-time.Second {
			t.Errorf("first %+v, again %+v", first, again)
		}
		r.pass(t, time.Hour)
		if again = r.want(t, Granted, tickClaim("a", "r1", 1)); again.Left != 0 {
			t.Errorf("a lapsed lease has %s left", again.Left)
		}
		others := must(r.led.Claim(t.Context(), Claimer{ID: "n2"}, r.now, []Claim{tickClaim("a", "r1", 1)}))
		if others[0].Verdict != Moved {
			t.Errorf("another node is answered %+v", others[0])
		}
		ask := tickClaim("a", "r1", 1)
		ask.From = 0 // a mere question
		r.want(t, Granted, ask)
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Moved, tickClaim("a", "r1", 1))
		r.want(t, Moved, ask)
		r.sound(t)
	})
}

// A batch is as good as its items one after another, also when it is full, and when a job stands
// in it twice.
func TestBatch(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		var defs []Definition
		var claims []Claim
		for i := range BatchMax {
			job := fmt.Sprintf("job-%02d", i)
			defs = append(defs, Definition{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000})
			claims = append(claims, tickClaim(job, "run-"+job, 1))
		}
		must(r.led.Define(t.Context(), r.now, defs))
		r.pass(t, 5*time.Second)
		if _, err := r.led.Trigger(t.Context(), "job-00", Trigger{Run: "by hand"}); err != nil {
			t.Fatal(err)
		}
		claims[49] = pendingClaim("job-00", "by hand")
		claims[48] = tickClaim("job-01", "other", 2)
		var reports []Report
		for i, a := range must(r.led.Claim(t.Context(), node, r.now, claims)) {
			want := map[int]Verdict{48: Held, 49: Held}[i] // 48 is late, not overlapping
			if want == 0 {
				want = Granted
			}
			if a.Verdict != want {
				t.Errorf("item %d: %+v, want %s", i, a, want)
			}
			reports = append(reports, Report{Job: claims[i].Job, Run: claims[i].Run, Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now})
		}
		reports[48], reports[49] = reports[0], reports[1] // each once more
		reports[49].Outcome = jobs.OutcomeFailed
		for i, w := range must(r.led.Settle(t.Context(), reports)) {
			if (w == Settled) != (i < 49) {
				t.Errorf("report %d: %s", i, w)
			}
		}
		if rows := r.rows(t, "job-00"); len(rows) != 1 {
			t.Errorf("rows of a run reported twice: %+v", rows)
		}
		r.sound(t)
	})
}

// TestLateTicksWait: a tick that was due before the run was granted that holds the job is not
// skipped: it is late, and waits. One that came due while that run was going is skipped.
func TestLateTicksWait(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 3500*time.Millisecond)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		before := r.client.HGet(t.Context(), r.led.keys[0].jobs, "a").Val()
		r.want(t, Held, tickClaim("a", "r2", 2))
		if after := r.client.HGet(t.Context(), r.led.keys[0].jobs, "a").Val(); after != before {
			t.Errorf("the entry changed from %q to %q", before, after)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.complete(t, jobs.OutcomeSucceeded, tickClaim("a", "r2", 2))
		r.want(t, Granted, tickClaim("a", "r3", 3))
		r.pass(t, time.Second)
		r.want(t, Skipped, tickClaim("a", "r4", 4))
		r.settle(t, Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.sound(t)
	})
}

// A tick that was handed back never began: it may come too late for start_within, and the jobs that follow hear of that.
func TestHandedBackTooLate(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		if err := r.led.Follow(t.Context(), "a", "b"); err != nil {
			t.Fatal(err)
		}
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Granted, tickClaim("a", "a-1", 1))
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "a-1"}}))
		r.pass(t, time.Minute)
		c := pendingClaim("a", Successor("a-1"))
		c.Drop = ReasonStartWithin
		if a := r.want(t, Passed, c); a.Detail != "missed,start_within" {
			t.Errorf("%+v", a)
		}
		if e := r.events(t); len(e) != 1 || e[0].Tick != noon+1000 || e[0].Outcome != jobs.OutcomeMissed {
			t.Errorf("told: %+v", e)
		}
		r.want(t, Granted, tickClaim("a", "a-2", 2))
		r.sound(t)
	})
}
