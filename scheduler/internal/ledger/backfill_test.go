package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// filling is a backfill of job a that begins now: ticks are the seconds before.
func (r *rig) filling(t *testing.T, ticks, parallel int) ledger.Backfill {
	t.Helper()
	b := ledger.Backfill{ID: "fill", Job: "a", From: r.now - 100_000, To: r.now, Parallel: parallel, Total: int64(ticks), Author: "ann"}
	if word := must(backfill.Begin(t.Context(), r.led, b, "d-second")); word != "begun" {
		t.Fatal(word)
	}
	return r.filled(t)
}

// filled is the backfill of job a.
func (r *rig) filled(t *testing.T) ledger.Backfill {
	t.Helper()
	all, unknownFormat, err := backfill.List(t.Context(), r.led, "a")
	if err != nil || unknownFormat > 0 || len(all) != 1 {
		t.Fatalf("%+v, %d unreadable, %v", all, unknownFormat, err)
	}
	return all[0]
}

// feed feeds a backfill that has these ticks left, which are seconds behind its beginning.
func (r *rig) feed(t *testing.T, b ledger.Backfill, want ledger.Status, left ...int64) ledger.Backfill {
	t.Helper()
	var next []int64
	for _, s := range left {
		next = append(next, b.From+s*1000)
	}
	b, got, err := backfill.Feed(t.Context(), r.led, b, "d-second", 1, next)
	if err != nil || got != want {
		t.Fatalf("fed with %v: %s, %v; want %s", left, got, err, want)
	}
	return b
}

// waits are the ticks of job a's pending runs, in the order in which they may start, in seconds
// behind the backfill's beginning.
func (r *rig) waits(t *testing.T, b ledger.Backfill) (ticks []int64) {
	t.Helper()
	all := keepIf(must(query.InFlight(t.Context(), r.led, "a")), ledger.Run.Pending)
	slices.SortFunc(all, func(x, y ledger.Run) int { return int(x.Granted - y.Granted) })
	for _, l := range all {
		if l.Trigger != "backfill" || l.Request != b.RunID(l.Tick) {
			t.Errorf("pending is %+v", l)
		}
		ticks = append(ticks, (l.Tick-b.From)/1000)
	}
	return ticks
}

// A backfill keeps as many runs pending or in flight as its parallel allows, in order, and ends
// with the last of them. The job's cursor and holder are not touched.
func TestBackfillFeeds(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		before := r.entry(t, "a")
		b := r.filling(t, 4, 2)
		b = r.feed(t, b, backfill.Put, 1, 2, 3)
		if got := r.waits(t, b); !slices.Equal(got, []int64{1, 2}) || len(b.Going) != 2 || b.Next != b.From+3000 {
			t.Fatalf("pending are %v: %+v", got, b)
		}
		b = r.feed(t, b, backfill.Fed, 3, 4)
		one := pendingClaim("a", b.Going[0].Run)
		one.Overlap = jobs.OverlapAllow
		r.want(t, claim.Granted, one)
		b = r.feed(t, b, backfill.Fed, 3, 4) // in flight counts
		r.pass(t, time.Second)
		r.settle(t, settle.Settled, "a", one.Run, jobs.OutcomeFailed)
		b = r.feed(t, b, backfill.Put, 3, 4)
		if got := r.waits(t, b); !slices.Equal(got, []int64{2, 3}) || b.Counts[jobs.OutcomeFailed] != 1 || b.Next != b.From+4000 {
			t.Fatalf("pending are %v: %+v", got, b)
		}
		for range 2 {
			c := pendingClaim("a", b.Going[0].Run)
			c.Overlap = jobs.OverlapAllow
			r.want(t, claim.Granted, c)
			must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: c.Run}})) // it goes on under another id
			b = r.feed(t, b, backfill.Fed, 4)
			if b.Going[0].Run != ledger.NextAttemptID(c.Run) {
				t.Fatalf("its run goes on as %s: %+v", ledger.NextAttemptID(c.Run), b)
			}
		}
		for len(b.Going) > 0 {
			for _, g := range b.Going {
				c := pendingClaim("a", g.Run)
				c.Overlap = jobs.OverlapAllow
				r.complete(t, jobs.OutcomeSucceeded, c)
			}
			left := []int64{4}
			if b.Next == 0 {
				left = nil
			}
			var err error
			if b, _, err = backfill.Feed(t.Context(), r.led, b, "d-second", 1, instants(b, left)); err != nil {
				t.Fatal(err)
			}
		}
		if b.State != ledger.BackfillDone || b.Ended != r.now || b.Counts[jobs.OutcomeSucceeded] != 3 || b.Counts[jobs.OutcomeFailed] != 1 {
			t.Errorf("at the end: %+v", b)
		}
		if last := r.filled(t); last.Record != b.Record || r.client.HLen(t.Context(), r.led.Keys[0].Backfills).Val() != 0 {
			t.Errorf("kept is %+v", last)
		}
		after := r.entry(t, "a")
		if after.Cursor != before.Cursor || after.HolderRun != "" || after.Busy != before.Busy || after.Last != before.Last {
			t.Errorf("the entry was %+v, and is %+v", before, after)
		}
		r.sound(t)
	})
}

// The record of a run of a backfill is gone, while the run goes on. It is not counted as lost:
// another epoch begins, and its node reports it.
func TestRunOfABackfillLost(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.create(t, "a")
		r.pass(t, time.Minute)
		b := r.feed(t, r.filling(t, 4, 2), backfill.Put, 1, 2, 3)
		c := pendingClaim("a", b.Going[0].Run)
		c.Overlap = jobs.OverlapAllow
		run := r.granted(t, c)
		r.client.Del(ctx, r.led.Keys[0].Runs)
		if got, _, err := backfill.Feed(ctx, r.led, b, "d-second", 1, instants(b, []int64{3, 4})); !errors.Is(err, ledger.ErrServer) {
			t.Fatalf("%+v, %v", got, err)
		}
		if here := must(r.led.Sample(ctx)).Incarnations[0]; here != "" {
			t.Errorf("incarnation %q goes on", here)
		}
		must(r.led.Restore(ctx, ""))
		epochID := ledger.EpochID(r.identity, must(r.led.Sample(ctx)).Incarnations[0])
		must(epoch.Reassert(ctx, r.led.At(epochID), r.now, []epoch.Assertion{of(run)}))
		if b = r.feed(t, b, backfill.Fed, 3, 4); len(b.Going) != 2 || b.Tally() != "no tick has run" {
			t.Errorf("it goes on as %+v", b)
		}
	})
}

func instants(b ledger.Backfill, seconds []int64) (all []int64) {
	for _, s := range seconds {
		all = append(all, b.From+s*1000)
	}
	return all
}

// A tick gets one run: a caller that has read an older state of the backfill is refused, and so is
// a tick whose run a failover has kept while it lost that the tick was put in.
func TestBackfillTickHasOneRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		seen := r.filling(t, 4, 2)
		b := r.feed(t, seen, backfill.Put, 1, 2, 3)
		r.feed(t, seen, "stale", 1, 2, 3)
		if _, got, err := backfill.Feed(t.Context(), r.led, b, "another", 1, nil); err != nil || got != "superseded" {
			t.Errorf("by another definition: %s, %v", got, err)
		}
		c := pendingClaim("a", b.Going[0].Run)
		c.Overlap = jobs.OverlapAllow
		r.complete(t, jobs.OutcomeSucceeded, c)
		r.client.HSet(t.Context(), r.led.Keys[0].Backfills, "a", seen.Record) // as a failover leaves it
		b = r.feed(t, seen, backfill.Fed, 1, 2, 3)
		r.pass(t, time.Second)
		b = r.feed(t, b, backfill.Put, 3, 4)
		if got := r.waits(t, b); !slices.Equal(got, []int64{2, 3}) || b.Counts[jobs.OutcomeSucceeded] != 1 {
			t.Errorf("pending are %v: %+v", got, b)
		}
		r.sound(t)
	})
}

// A paused job's backfill waits, with the runs of it that are pending; a cancelled one ends with
// its runs.
func TestBackfillWaitsAndIsCancelled(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		b := r.feed(t, r.filling(t, 9, 2), backfill.Put, 1, 2, 3)
		pauseErr(t, operate.Pause(t.Context(), r.led, "a", ledger.Pause{Author: "ann", Reason: "x"}))
		c := pendingClaim("a", b.Going[0].Run)
		c.Overlap = jobs.OverlapAllow
		if a := r.want(t, claim.JobBusy, c); a.Detail != claim.HeldByPause {
			t.Errorf("held by %s", a.Detail)
		}
		must(operate.Cancel(t.Context(), r.led, "a", c.Run, "ann", "this one"))
		b = r.feed(t, b, backfill.Fed, 3, 4, 5)
		if b.Counts[jobs.OutcomeCancelled] != 1 || len(b.Going) != 1 || b.Next != b.From+3000 {
			t.Errorf("while it is paused: %+v", b)
		}
		pauseErr(t, operate.Resume(t.Context(), r.led, "a"))
		b = r.feed(t, b, backfill.Put, 3, 4, 5)
		going := pendingClaim("a", b.Going[0].Run)
		going.Overlap = jobs.OverlapAllow
		r.want(t, claim.Granted, going)
		b, err := backfill.Cancel(t.Context(), r.led, "a", "bob", "wrong|range")
		if err != nil || b.State != ledger.BackfillCancelled || b.Next != 0 || b.By != "bob" || b.Reason != "wrong/range" {
			t.Fatalf("%+v, %v", b, err)
		}
		if n := r.client.HLen(t.Context(), r.led.Keys[0].Cancels).Val(); n != 1 || len(r.waits(t, b)) > 0 {
			t.Errorf("%d runs are told, and %v are pending", n, r.waits(t, b))
		}
		b = r.feed(t, b, backfill.Fed)
		r.settle(t, settle.Settled, "a", going.Run, jobs.OutcomeCancelled)
		if b = r.feed(t, b, backfill.Ended); b.State != ledger.BackfillCancelled || b.Counts[jobs.OutcomeCancelled] != 3 {
			t.Errorf("at the end: %+v", b)
		}
		if _, err := backfill.Cancel(t.Context(), r.led, "a", "bob", ""); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("cancelled when it is over: %v", err)
		}
		r.sound(t)
	})
}

func pauseErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A request for a backfill is one, however often it comes; a job has one under way, and a partition
// so many. A removed job's is gone.
func TestBackfillsAreBounded(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		b := r.filling(t, 1, 1)
		if word, err := backfill.Begin(t.Context(), r.led, b, "d-second"); err != nil || word != "begun" {
			t.Errorf("asked again: %s, %v", word, err)
		}
		other := b
		other.ID = "other"
		if _, err := backfill.Begin(t.Context(), r.led, other, "d-second"); !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), "backfill fill of the job is under way") {
			t.Errorf("beside another one: %v", err)
		}
		for _, of := range []struct {
			job, digest string
			want        error
			word        ledger.Status
		}{{"nobody", "d-second", ledger.ErrUnknownJob, ""}, {"b", "another", nil, operate.Elsewhere}} {
			if of.job == "b" {
				r.create(t, "b")
			}
			b := b
			b.Job = of.job
			if word, err := backfill.Begin(t.Context(), r.led, b, of.digest); !errors.Is(err, of.want) || word != of.word {
				t.Errorf("%s: %s, %v", of.job, word, err)
			}
		}
		r.feed(t, b, backfill.Ended)
		if word, err := backfill.Begin(t.Context(), r.led, b, "d-second"); err != nil || word != "begun" || r.filled(t).State != ledger.BackfillDone {
			t.Errorf("asked again when it is over: %s, %v, %+v", word, err, r.filled(t))
		}
		for i := range backfill.Most {
			r.client.HSet(t.Context(), r.led.Keys[0].Backfills, fmt.Sprint("job ", i), b.Record)
		}
		if _, err := backfill.Begin(t.Context(), r.led, other, "d-second"); !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), "100 backfills are under way") {
			t.Errorf("beside many: %v", err)
		}
		pauseErr(t, operate.Remove(t.Context(), r.led, "a"))
		if r.client.HExists(t.Context(), r.led.Keys[0].Backfilled, "a").Val() {
			t.Error("a removed job's backfill is kept")
		}
	})
}

// A backfill has no more runs under way than the history has rows for: the outcome of each is there
// to be counted.
func TestBackfillFitsIntoTheHistory(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		for shards, want := range map[int]int{0: 8, 1: 8, 2: 2, 7: 1, 15: 1} {
			if got := backfill.AtOnce(r.led, ledger.Backfill{Parallel: 100}, shards); got != want {
				t.Errorf("with %d shards %d at once, want %d", shards, got, want)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		b := r.filling(t, 60, 60)
		left := make([]int64, 60)
		for i := range left {
			left[i] = int64(i + 1)
		}
		for range 100 {
			var err error
			if b, _, err = backfill.Feed(t.Context(), r.led, b, "d-second", 1, instants(b, left)); err != nil {
				t.Fatal(err)
			}
			for len(left) > 0 && (b.Next == 0 || b.From+left[0]*1000 < b.Next) {
				left = left[1:]
			}
			for _, g := range b.Going {
				c := pendingClaim("a", g.Run)
				c.Overlap = jobs.OverlapAllow
				r.complete(t, jobs.OutcomeSucceeded, c)
			}
		}
		if b.State != ledger.BackfillDone || b.Counts[jobs.OutcomeSucceeded] != 60 {
			t.Errorf("at the end: %+v", b)
		}
	})
}

// Backfills leave half of a partition's pending places free, and a backfill whose job's history
// cannot be read changes nothing.
func TestBackfillStandsBack(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		b := r.filling(t, 4, 4)
		pending := r.led.Keys[0].Pending
		r.client.ZAdd(t.Context(), pending, members(ledger.PendingMax/2-1)...)
		b = r.feed(t, b, backfill.Put, 1, 2, 3, 4)
		b = r.feed(t, b, backfill.Fed, 2, 3, 4)
		if len(b.Going) != 1 {
			t.Errorf("beside many: %+v", b)
		}
		r.client.ZRemRangeByRank(t.Context(), pending, 0, 10)
		history := r.led.Keys[0].History + "a"
		r.client.Set(t.Context(), history, "no list", 0)
		if _, got, err := backfill.Feed(t.Context(), r.led, b, "d-second", 1, instants(b, []int64{2, 3, 4})); err != nil || got != backfill.UnknownFormat || r.filled(t).Record != b.Record {
			t.Errorf("beside a history that is none: %s, %v", got, err)
		}
		r.client.Del(t.Context(), history)
		if b = r.feed(t, b, backfill.Put, 2, 3, 4); len(b.Going) != 4 {
			t.Errorf("later: %+v", b)
		}
	})
}

// A backfill that was stored again and ended by a node that does not know that state has ended.
func TestBackfillEndedAsRestored(t *testing.T) {
	for ended, want := range map[int64]string{0: ledger.BackfillGoing, 1: ledger.BackfillDone} {
		record := fmt.Sprintf("1|x|a|%s|1|2||1|2|succeeded=2||1|1|%d|ann||", "restored", ended)
		b, err := ledger.ParseBackfill(record)
		if err != nil || b.State != want {
			t.Errorf("ended %d: %s, want %s: %v", ended, b.State, want, err)
		}
	}
}
