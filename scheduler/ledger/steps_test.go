package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Words for the tests below: a rig with one partition, jobs that tick each second.

var oneConfig = Config{Partitions: 1, Keep: 16}

const ttl = 5 * time.Second

var node = Claimer{ID: "n1", Name: "alpha"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// create makes a job whose first tick is at noon and a second.
func (r *rig) create(t *testing.T, job string) {
	t.Helper()
	got := must(r.led.Define(t.Context(), r.now, []Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000}}))
	if got[0].Word != "created" {
		t.Fatalf("%s: %s", job, got[0].Word)
	}
}

// tickClaim is the claim of a job's tick so many seconds after noon.
func tickClaim(job, run string, second int64) Claim {
	at := noon + second*1000
	return Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: at, Tick: at, Next: at + 1000}
}

// lateClaim passes so many ticks as missed before it runs one.
func lateClaim(job, run string, from, missed int64) Claim {
	c := tickClaim(job, run, from+missed)
	c.From, c.Trigger = noon+from*1000, jobs.TriggerCatchUp
	c.Passes = []Pass{seconds(jobs.OutcomeMissed, ReasonLate, from, from+missed-1)}
	return c
}

// seconds is a pass of the ticks from one second after noon to another.
func seconds(outcome jobs.Outcome, reason string, first, last int64) Pass {
	return Pass{Outcome: outcome, Reason: reason, First: noon + first*1000, Last: noon + last*1000, Count: last - first + 1, Next: noon + (last+1)*1000}
}

func pendingClaim(job, run string) Claim {
	return Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, Pending: true}
}

func (r *rig) claim(t *testing.T, c Claim) Answer {
	t.Helper()
	return must(r.led.Claim(t.Context(), node, r.now, []Claim{c}))[0]
}

// want claims and compares the verdict.
func (r *rig) want(t *testing.T, v Verdict, c Claim) Answer {
	t.Helper()
	a := r.claim(t, c)
	if a.Verdict != v {
		t.Fatalf("claim %+v: %+v, want %s", c, a, v)
	}
	return a
}

func (r *rig) settle(t *testing.T, want Word, job, run string, outcome jobs.Outcome) {
	t.Helper()
	got := must(r.led.Settle(t.Context(), []Report{{Job: job, Run: run, Outcome: outcome, Started: r.now, Ended: r.now, Tries: 1}}))
	if got[0] != want {
		t.Fatalf("settle of %s: %s, want %s", run, got[0], want)
	}
}

func (r *rig) rows(t *testing.T, job string) []Row {
	t.Helper()
	rows, _, err := r.led.History(t.Context(), []string{job})
	if err != nil {
		t.Fatal(err)
	}
	return rows[job]
}

func (r *rig) entry(t *testing.T, job string) Entry {
	t.Helper()
	return must(r.led.Job(t.Context(), job)).Entry
}

// tale compares a job's history, told by outcome and second after noon: "succeeded 1", "failed 1 #2" for
// another attempt, "abandoned by hand" for a run that a person asked for, "missed 2-11 x10 late".
func (r *rig) tale(t *testing.T, job string, want ...string) {
	t.Helper()
	var got []string
	for _, row := range r.rows(t, job) {
		s := fmt.Sprintf("%s %d", row.Outcome, (row.Tick-noon)/1000)
		switch {
		case row.Ranged:
			s = strings.TrimSpace(fmt.Sprintf("%s-%d x%d %s %s", s, max(0, row.Until-noon)/1000, row.Count, row.Reason, row.Note))
		case row.Request != "":
			s = row.Outcome.String() + " by hand"
		}
		if !row.Ranged && row.Attempt > 1 {
			s += fmt.Sprint(" #", row.Attempt)
		}
		got = append(got, s)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history of %s is\n%q, want\n%q", job, got, want)
	}
}

// sound says that the books close.
func (r *rig) sound(t *testing.T) {
	t.Helper()
	if wrong := must(r.led.Verify(t.Context(), "")); len(wrong) > 0 {
		t.Fatalf("the books do not close: %+v", wrong)
	}
}

func TestOverlapSkips(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Second)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		r.pass(t, 9*time.Second)
		for s := int64(2); s < 5; s++ {
			if a := r.want(t, Skipped, tickClaim("a", fmt.Sprint("r", s), s)); a.Cursor != noon+(s+1)*1000 {
				t.Fatalf("skipped to %d", a.Cursor)
			}
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Granted, tickClaim("a", "r5", 5))
		r.settle(t, Settled, "a", "r5", jobs.OutcomeFailed)
		want := []Row{
			{Job: "a", Ranged: true, Prev: noon + 2000, Next: noon + 5000, At: r.now, Tick: noon + 2000, Until: noon + 4000, Count: 3, Outcome: jobs.OutcomeSkipped, Reason: "overlap"},
			{Job: "a", Prev: noon + 1000, Next: noon + 2000, At: r.now, Tick: noon + 1000, Shards: 1, Attempt: 1, Tries: 1, Run: "r1", Token: noon*1000 + 61_000_000,
				Node: "n1", NodeName: "alpha", Trigger: "schedule", Outcome: jobs.OutcomeSucceeded, Started: r.now},
			{Job: "a", Prev: noon + 5000, Next: noon + 6000, At: r.now, Tick: noon + 5000, Shards: 1, Attempt: 1, Tries: 1, Run: "r5", Token: noon*1000 + 61_000_001,
				Node: "n1", NodeName: "alpha", Trigger: "schedule", Outcome: jobs.OutcomeFailed, Started: r.now},
		}
		if got := r.rows(t, "a"); !reflect.DeepEqual(got, want) {
			t.Errorf("rows are%s\nwant%s", many(got), many(want))
		}
		r.sound(t)
	})
}

func TestMissedTicksAreOneRow(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 5*time.Second)
		r.want(t, Granted, tickClaim("a", "holds", 1))
		r.pass(t, time.Hour)
		late := func(run string, from, missed int64) Claim { return lateClaim("a", run, from, missed) }
		r.want(t, Skipped, late("r2", 2, 10)) // missed 2 to 11, held: 12 skipped
		r.want(t, Skipped, tickClaim("a", "r3", 13))
		r.want(t, Skipped, late("r4", 14, 1)) // missed 14, skipped 15
		r.settle(t, Settled, "a", "holds", jobs.OutcomeSucceeded)
		r.want(t, Granted, late("r5", 16, 100)) // missed 16 to 115, run 116
		r.settle(t, Settled, "a", "r5", jobs.OutcomeSucceeded)
		var got []string
		for _, row := range r.rows(t, "a") {
			got = append(got, fmt.Sprintf("%s %d-%d x%d %s", row.Outcome, (row.Tick-noon)/1000, max(0, row.Until-noon)/1000, row.Count, row.Trigger))
		}
		want := "missed 2-11 x10 |skipped 12-13 x2 |missed 14-14 x1 |skipped 15-15 x1 |succeeded 1-0 x0 schedule|missed 16-115 x100 |succeeded 116-0 x0 catch_up"
		if strings.Join(got, "|") != want {
			t.Errorf("rows are\n%s\nwant\n%s", strings.Join(got, "|"), want)
		}
		r.sound(t)
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

func TestSettle(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeFailed)
		r.settle(t, Settled, "a", "r1", jobs.OutcomeFailed) // the reply was lost
		r.settle(t, NoSuchRun, "a", "r2", jobs.OutcomeFailed)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeSucceeded)
		first := r.now
		r.pass(t, time.Second)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeCancelled)
		rows := r.rows(t, "a")
		if len(rows) != 1 || rows[0].Outcome != jobs.OutcomeFailed || rows[0].Late != fmt.Sprint("succeeded ", first) {
			t.Errorf("want one row, failed, with the first late report: %+v", rows)
		}
		long := strings.Repeat("ä", 1200) + "|\n"
		r.want(t, Granted, tickClaim("a", "r3", 2))
		must(r.led.Settle(t.Context(), []Report{{Job: "a", Run: "r3", Outcome: jobs.OutcomeFailed, Reason: "a|b\nc", Error: long}}))
		r.settle(t, Lost, "a", "r3", jobs.OutcomeSucceeded) // finds its row whatever the error says
		got := r.rows(t, "a")[1]
		if got.Reason != "a/b c" || got.Error != strings.Repeat("ä", 1022)+"..." || got.Late == "" {
			t.Errorf("row is %+v", got)
		}
		r.sound(t)
	})
}

func TestReap(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		granted := r.now
		reap := func(want Word, beat int64) {
			t.Helper()
			if got := must(r.led.Reap(t.Context(), r.now, r.identity, []Lease{{Job: "a", Run: "r1", Beat: beat}})); got[0] != want {
				t.Fatalf("reaped: %s, want %s", got[0], want)
			}
		}
		r.pass(t, ttl)
		reap(Alive, 0) // until is now
		r.pass(t, time.Millisecond)
		reap(Alive, 1)
		r.renew(t, "a", "r1", true) // lapsed, and still its holder's
		r.pass(t, ttl+time.Millisecond)
		reap(Alive, 0)
		reap(Reaped, 1)
		reap(Gone, 1)
		r.renew(t, "a", "r1", false)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeSucceeded)
		row := r.rows(t, "a")[0]
		if row.Outcome != jobs.OutcomeAbandoned || row.Reason != "lease lapsed" || row.Started != granted || row.At != r.now || row.Late != fmt.Sprint("succeeded ", r.now) {
			t.Errorf("row is %+v", row)
		}
		r.want(t, Granted, tickClaim("a", "r2", 2))
		r.sound(t)
	})
}

func TestUnclaim(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.want(t, Granted, tickClaim("a", "r1", 1))
		back := func(want Word, run, fresh string) {
			t.Helper()
			if got := must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: run, Fresh: fresh}})); got[0] != want {
				t.Fatalf("unclaim of %s: %s, want %s", run, got[0], want)
			}
		}
		back(Returned, "r1", "f1")
		back(Returned, "r1", "f1")
		back(Lost, "r1", "f2")
		r.want(t, Moved, tickClaim("a", "r1", 1)) // a delayed copy: the id is burnt
		r.want(t, Moved, pendingClaim("a", "r1"))
		r.settle(t, NoSuchRun, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Skipped, tickClaim("a", "r2", 2)) // it holds the job while it waits
		r.sound(t)
		a := r.want(t, Granted, pendingClaim("a", "f1"))
		want := Lease{Job: "a", Tick: noon + 1000, Shards: 1, Attempt: 1, Token: first.Token + 1, Node: "n1", NodeName: "alpha", Until: r.now + 5000,
			TTL: 5000, Prev: noon + 1000, Next: noon + 2000, Trigger: "schedule", Granted: r.now, Overlap: "s", Attempts: 1, Payload: []byte{}}
		if a.Left != ttl || !reflect.DeepEqual(a.Run, want) {
			t.Errorf("granted %+v, want the record %+v", a, want)
		}
		if again := r.want(t, Granted, pendingClaim("a", "f1")); !reflect.DeepEqual(again, a) {
			t.Errorf("asked again: %+v, first %+v", again, a)
		}
		r.settle(t, Settled, "a", "f1", jobs.OutcomeSucceeded)
		r.want(t, Granted, tickClaim("a", "r3", 3))
		r.sound(t)
	})
}

func TestTriggerIsOneRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		payload := []byte("{\"a\":\"b|c\"}\n\x00\xff")
		trigger := func(when string, pending int) {
			t.Helper()
			if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t1", Payload: payload}); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, l := range must(r.led.Open(t.Context(), jobNames...)) {
				if l.Pending() {
					n++
				}
			}
			if n != pending {
				t.Fatalf("%s: %d pending runs, want %d", when, n, pending)
			}
		}
		trigger("asked for", 1)
		trigger("asked for again", 1)
		r.want(t, Granted, tickClaim("a", "r1", 1)) // a pending trigger does not hold the job
		if a := r.want(t, Held, pendingClaim("a", "t1")); a.Detail != "r1" {
			t.Errorf("held by %q", a.Detail)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		if a := r.want(t, Granted, pendingClaim("a", "t1")); string(a.Run.Payload) != string(payload) || a.Run.Trigger != "manual" || a.Run.Prev != 0 {
			t.Errorf("granted %+v", a)
		}
		trigger("running", 0)
		f1 := Successor("t1")
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "t1", Fresh: f1}}))
		trigger("handed back", 1)
		r.want(t, Granted, pendingClaim("a", f1))
		trigger("running under another id", 0)
		r.settle(t, Settled, "a", f1, jobs.OutcomeSucceeded)
		trigger("ended", 0)
		r.settle(t, NoSuchRun, "a", "t1", jobs.OutcomeFailed) // burnt, although its request is in the books
		if row := r.rows(t, "a")[1]; row.Run != f1 || row.Request != "t1" || row.Late != "" {
			t.Errorf("row is %+v", row)
		}
		r.sound(t)
		if _, err := r.led.Trigger(t.Context(), "nobody", Trigger{Run: "t2"}); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t3", Payload: make([]byte, PayloadMax+1)}); !errors.Is(err, ErrRefused) {
			t.Errorf("payload too large: %v", err)
		}
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t3", Payload: make([]byte, PayloadMax)}); err != nil {
			t.Errorf("payload just fits: %v", err)
		}
	})
}

func TestTriggerRefusesTooMany(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	r.create(t, "a")
	pipe := r.client.Pipeline()
	for i := range pendingMax {
		pipe.Do(t.Context(), "ZADD", r.led.keys[0].pending, noon, i)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

// TestStepsLeadForwards: a step that does not lead from the cursor to a tick and on behind it is
// refused, whoever made it up: granted, it could run a tick a second time.
func TestStepsLeadForwards(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		good := tickClaim("a", "r1", 1)
		r.clock(t, good.Tick*1000, "aaaaaaaaaaaa")
		back, still := good, good
		back.Tick = good.From - 1000
		still.Next = good.Tick
		for name, c := range map[string]Claim{"to before the cursor": back, "on to the tick itself": still} {
			before := r.client.HGet(t.Context(), r.led.keys[0].jobs, "a").Val()
			r.want(t, Moved, c)
			if after := r.client.HGet(t.Context(), r.led.keys[0].jobs, "a").Val(); after != before {
				t.Errorf("%s: the entry changed from %q to %q", name, before, after)
			}
		}
		r.want(t, Granted, good)
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
		r.want(t, Granted, tickClaim("a", "r2", 2))
		r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded)
		r.want(t, Granted, tickClaim("a", "r3", 3))
		r.pass(t, time.Second)
		r.want(t, Skipped, tickClaim("a", "r4", 4))
		r.settle(t, Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.sound(t)
	})
}
