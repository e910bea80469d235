package ledger

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// sharded is a claim of a job with so many shards.
func sharded(n int, c Claim, params ...string) Claim {
	c.Shards, c.Params = n, params
	return c
}

// shardClaim is the claim of a shard of an open tick.
func shardClaim(job, tick string, shard int) Claim { return shardAgain(job, ShardRun(tick, shard)) }

// shardAgain is the claim of a later attempt of one.
func shardAgain(job, run string) Claim {
	c := pendingClaim(job, run)
	c.Shard = true
	return c
}

// ended claims and settles shards of an open tick, from the first on.
func (r *rig) ended(t *testing.T, job, tick string, outcomes ...jobs.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		r.want(t, Granted, shardClaim(job, tick, i))
		r.settle(t, Settled, job, ShardRun(tick, i), o)
	}
}

// parts compares a job's history with shards in it: "0/3 failed #2" is the second attempt of a shard, "0/3 alone"
// one that is of no tick, "all 3" a tick.
func (r *rig) parts(t *testing.T, job string, want ...string) {
	t.Helper()
	var got []string
	for _, row := range r.rows(t, job) {
		s := fmt.Sprintf("%s %d", row.Outcome, (row.Tick-noon)/1000)
		if row.Request != "" {
			s = row.Outcome.String() + " by hand"
		}
		switch {
		case row.Whole:
			s = fmt.Sprintf("all %d %s", row.Shards, s)
		case row.Shards > 1 && row.Of == "":
			s = fmt.Sprintf("%d/%d alone %s", row.Shard, row.Shards, s)
		case row.Shards > 1:
			s = fmt.Sprintf("%d/%d %s", row.Shard, row.Shards, s)
		}
		if row.Attempt > 1 {
			s += fmt.Sprint(" #", row.Attempt)
		}
		if row.Whole && row.Reason != "" {
			s += ": " + row.Reason
		}
		got = append(got, s)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history of %s is\n%q, want\n%q", job, got, want)
	}
}

// proven says that the books of all jobs are true, as far as that needs no schedule.
func (r *rig) proven(t *testing.T) {
	t.Helper()
	r.sound(t)
	for _, s := range must(r.led.Jobs(t.Context())) {
		rows := r.rows(t, s.Job)
		if wrong := Audit(s.Entry, jobs.Definition{}, rows, must(r.led.Open(t.Context(), s.Job))); len(wrong) > 0 {
			t.Fatalf("the books of %s:\n%s", s.Job, show(wrong))
		}
	}
}

// left is the open tick's record; nil when there is none.
func (r *rig) left(t *testing.T, job, tick string) *Lease {
	t.Helper()
	for _, l := range must(r.led.Open(t.Context(), job)) {
		if l.Run == tick && l.Whole {
			return &l
		}
	}
	return nil
}

// unchanged does something that must leave every key as it is.
func (r *rig) unchanged(t *testing.T, what string, do func()) {
	t.Helper()
	before := dump(t, r.client)
	do()
	if wrong := differences(before, dump(t, r.client)); len(wrong) > 0 {
		t.Errorf("%s changed %s", what, strings.Join(wrong, "\n"))
	}
}

// TestOpenATick: the cursor moves on, the tick holds the job and waits, its shards are pending with their
// parameters; asked again, by whomever, nothing changes.
func TestOpenATick(t *testing.T) {
	params := []string{"a,b|c", "", "süd ost\n%2C+"}
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		opened := r.now
		c := sharded(3, tickClaim("a", "x", 1), params...)
		a := r.want(t, Opened, c)
		if a.Detail != "x" || a.Cursor != noon+2000 || a.Token != 0 {
			t.Errorf("answered %+v", a)
		}
		if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Open != "x" || e.Token != 0 {
			t.Errorf("the entry is %+v", e)
		}
		want := []Lease{{Run: "x", Job: "a", Tick: noon + 1000, Shards: 3, Left: 3, Whole: true, Attempt: 1, Prev: noon + 1000, Next: noon + 2000,
			Trigger: "schedule", Granted: opened, Overlap: "s", Payload: []byte{}}}
		for i, p := range params {
			want = append(want, Lease{Run: ShardRun("x", i), Job: "a", Tick: noon + 1000, Shard: i, Shards: 3, Attempt: 1, Trigger: "schedule",
				Granted: opened, Of: "x", Param: p, Payload: []byte{}})
		}
		if open := must(r.led.Open(t.Context(), "a")); !reflect.DeepEqual(open, want) {
			t.Errorf("open are%s\nwant%s", many(open), many(want))
		}
		found := must(r.led.NewGaze().Look(t.Context(), r.now, 0))
		if len(found.Pending) != 3 || slices.ContainsFunc(found.Pending, func(l Lease) bool { return l.Whole }) {
			t.Errorf("a look finds %+v", found.Pending)
		}
		r.pass(t, 200*time.Millisecond)
		r.unchanged(t, "asking again", func() {
			other := c
			other.Run = "y"
			for _, by := range []string{"n1", "n2"} {
				for _, again := range []Claim{c, other} {
					got := must(r.led.Claim(t.Context(), Claimer{ID: by}, r.now, []Claim{again}))[0]
					if got.Verdict != Opened || got.Detail != "x" || got.Cursor != noon+2000 {
						t.Errorf("%s asks as %s and is answered %+v", by, again.Run, got)
					}
				}
			}
			r.want(t, Moved, tickClaim("a", "y", 1)) // a node that knows of no shards
			r.want(t, Opened, pendingClaim("a", "x"))
			r.want(t, Opened, shardAgain("a", "x"))
			r.create(t, "b")
			r.want(t, Moved, pendingClaim("b", "x"))
			if err := r.led.Remove(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
		})
		r.proven(t)
	})
}

// TestCloseATick: the job stays held until the last shard has ended; then the tick has a row, which is the
// step of the cursor. Shards are counted, the tick is not.
func TestCloseATick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		opened := r.now
		r.want(t, Opened, sharded(3, tickClaim("a", "x", 1), "p", "", "r|r"))
		var token int64
		for i := range 3 {
			a := r.want(t, Granted, shardClaim("a", "x", i))
			if again := r.want(t, Granted, shardClaim("a", "x", i)); !reflect.DeepEqual(again, a) || a.Token <= token {
				t.Errorf("granted %+v, asked again %+v", a, again)
			}
			if l := a.Run; l.Of != "x" || l.Shard != i || l.Shards != 3 || l.Prev != 0 || l.Tick != noon+1000 {
				t.Errorf("granted %+v", l)
			}
			if other := must(r.led.Claim(t.Context(), Claimer{ID: "n2"}, r.now, []Claim{shardClaim("a", "x", i)})); other[0].Verdict != Moved {
				t.Errorf("another node is answered %+v", other[0])
			}
			token = a.Token
		}
		for i := range 3 {
			if l, e := r.left(t, "a", "x"), r.entry(t, "a"); l == nil || l.Left != 3-i || e.Open != "x" {
				t.Fatalf("before shard %d: %+v, held by %q", i, l, e.Open)
			}
			r.settle(t, Settled, "a", ShardRun("x", i), jobs.OutcomeSucceeded)
			r.settle(t, Settled, "a", ShardRun("x", i), jobs.OutcomeSucceeded)
			r.proven(t)
		}
		e, rows := r.entry(t, "a"), r.rows(t, "a")
		if e.Open != "" || r.left(t, "a", "x") != nil || len(rows) != 4 || e.Counts[jobs.OutcomeSucceeded] != 3 {
			t.Fatalf("at the end: %+v, %+v", e, rows)
		}
		want := Row{Job: "a", Whole: true, Prev: noon + 1000, Next: noon + 2000, At: r.now, Tick: noon + 1000, Shards: 3, Attempt: 1, Highest: 1, Run: "x",
			Trigger: "schedule", Outcome: jobs.OutcomeSucceeded, Started: opened}
		if !reflect.DeepEqual(rows[3], want) {
			t.Errorf("the tick's row is\n%+v, want\n%+v", rows[3], want)
		}
		if rows[0].Param != "p" || rows[1].Param != "" || rows[2].Param != "r|r" || rows[2].Of != "x" || rows[2].Prev != 0 {
			t.Errorf("the shards' rows are %+v", rows[:3])
		}
		r.want(t, Moved, sharded(3, tickClaim("a", "y", 1)))
		r.want(t, Moved, sharded(3, tickClaim("a", "x", 1)))
		r.want(t, Moved, shardClaim("a", "x", 0))
	})
}

// TestTheWorstOutcome: whatever the order in which the shards end.
func TestTheWorstOutcome(t *testing.T) {
	ok, no, late, gone, off := jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost, jobs.OutcomeCancelled
	for want, outcomes := range map[string][]jobs.Outcome{
		"all 3 succeeded 1": {ok, ok, ok},
		"all 3 cancelled 1: 1 of 3 shards did not succeed": {ok, off, ok},
		"all 3 failed 1: 2 of 3 shards did not succeed":    {no, off, ok},
		"all 3 timed_out 1: 2 of 3 shards did not succeed": {no, late, ok},
		"all 3 lost 1: 3 of 3 shards did not succeed":      {gone, no, late},
		"all 2 failed 1: 1 of 2 shards did not succeed":    {no, ok},
	} {
		t.Run(want, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.want(t, Opened, sharded(len(outcomes), tickClaim("a", "x", 1)))
				r.ended(t, "a", "x", outcomes...)
				rows := r.rows(t, "a")
				if r.proven(t); !rows[len(rows)-1].Whole {
					t.Fatalf("rows %+v", rows)
				}
				var told []string
				for i, o := range outcomes {
					told = append(told, fmt.Sprintf("%d/%d %s 1", i, len(outcomes), o))
				}
				r.parts(t, "a", append(told, want)...)
			})
		})
	}
}

// TestShardsByHand: the payload lies in the open tick, every shard is given it, also when the answer got
// lost, or when the shard alone is repeated, and it is kept beside the tick.
func TestShardsByHand(t *testing.T) {
	const payload = "p|\n\x00"
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte(payload)}))
		r.want(t, Opened, sharded(2, pendingClaim("a", "t"), "one", "two"))
		r.unchanged(t, "asking again", func() {
			r.want(t, Opened, sharded(2, pendingClaim("a", "t"), "one", "two"))
			must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		})
		given := func(c Claim) Answer {
			t.Helper()
			a := r.want(t, Granted, c)
			if again := r.want(t, Granted, c); string(a.Run.Payload) != payload || a.Run.Request == "" || !reflect.DeepEqual(a, again) {
				t.Errorf("granted %+v, asked again %+v", a, again)
			}
			return a
		}
		given(shardClaim("a", "t", 0))
		r.settle(t, Settled, "a", "t.0", jobs.OutcomeFailed)
		alone := must(r.led.Rerun(t.Context(), "a", "t.0")) // while the tick is open
		r.want(t, Held, pendingClaim("a", alone))
		given(shardClaim("a", "t", 1))
		r.settle(t, Settled, "a", "t.1", jobs.OutcomeSucceeded)
		if a := given(pendingClaim("a", alone)); a.Run.Param != "one" || a.Run.Of != "" || a.Run.Shards != 2 {
			t.Errorf("granted %+v", a)
		}
		r.settle(t, Settled, "a", alone, jobs.OutcomeSucceeded)
		for _, run := range []string{"t", alone} {
			if _, kept, err := r.led.Kept(t.Context(), "a", run); string(kept) != payload || err != nil {
				t.Errorf("kept of %s: %q, %v", run, kept, err)
			}
		}
		later := must(r.led.Rerun(t.Context(), "a", "t.1"))
		given(pendingClaim("a", later))
		r.settle(t, Settled, "a", later, jobs.OutcomeSucceeded)
		all := must(r.led.Rerun(t.Context(), "a", "t"))
		r.want(t, Opened, sharded(2, pendingClaim("a", all)))
		given(shardClaim("a", all, 0))
		r.settle(t, Settled, "a", ShardRun(all, 0), jobs.OutcomeSucceeded)
		given(shardClaim("a", all, 1))
		r.settle(t, Settled, "a", ShardRun(all, 1), jobs.OutcomeSucceeded)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		if l := r.open(t, "a"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		r.parts(t, "a", "0/2 failed by hand", "1/2 succeeded by hand", "all 2 failed by hand: 1 of 2 shards did not succeed",
			"0/2 alone succeeded by hand #2", "1/2 alone succeeded by hand #2", "0/2 succeeded by hand #2", "1/2 succeeded by hand #2",
			"all 2 succeeded by hand #2")
		r.proven(t)
	})
}
