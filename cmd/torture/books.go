package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// unsound is what the books have wrong: in themselves, or against the sink.
const unsound kind = "BOOKS"

// namespace of every scenario but broken.
const namespace = "escapement"

// books are what the ledger recorded, read when all nodes have stopped.
type books struct{ verify.Books }

func readBooks(ctx context.Context, client redis.UniversalClient) (books, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err != nil {
		return books{}, err
	}
	b, err := verify.ReadBooks(ctx, l)
	return books{b}, err
}

// rules are what a scenario may leave in the books beside runs that succeeded.
type rules struct {
	switched map[string][]window // by job: when its schedule may be replaced by another, and ticks recorded as superseded
	struck   map[string]bool     // nodes that were killed or frozen: their runs may be abandoned, and ticks skipped meanwhile
	gap      window              // ticks that may be missed, or skipped behind a run that was late itself
	lossy    window              // ticks whose records Redis may have forgotten
	stop     time.Time           // when all nodes were told to stop
}

// unclaimed is the reason of a tick that came so shortly before the stop that nobody had to have
// claimed it, and that the cursor shows as nobody's. The next node to start would.
const unclaimed = "unclaimed at the stop"

// audit is what judging the books by a scenario's rules gives.
type audit struct {
	absent     map[tickID]string // why a tick did not run
	abandoned  map[string]bool   // run ids
	unrecorded []line            // of the sink, in a lossy window
	violations []violation
}

func (a *audit) add(format string, args ...any) {
	a.violations = append(a.violations, violation{unsound, fmt.Sprintf(format, args...)})
}

// judge goes through the books alone.
func (b books) judge(all []job, r rules) audit {
	a := audit{absent: map[tickID]string{}, abandoned: map[string]bool{}}
	for _, wrong := range b.Chain {
		a.add("%s", wrong)
	}
	for _, j := range all {
		rows := b.Rows[j.name]
		left := leftAlone(rows, j.schedule)
		for i, row := range rows {
			switch {
			case left[i]: // its ticks go on
			case gaveWay(row):
				a.replaced(j, row, r)
			case row.Ranged:
				a.passed(j, row, rows[:i], rows[i+1:], r)
			default:
				a.ended(row, r)
			}
		}
		from := max(0, b.Cursor[j.name].Unix(), ceil(r.stop.Add(-startsWithin)))
		for second := from; second <= r.stop.Unix(); second++ {
			if j.due(second) {
				a.absent[tickID{j.name, second}] = unclaimed
			}
		}
	}
	for _, l := range b.Open {
		// An open tick is as its parts are, which are there as well; without any, somebody has forgotten to close it.
		if !l.Whole || !slices.ContainsFunc(b.Open, func(part ledger.Lease) bool { return part.Of == l.Run }) {
			a.unsettled(l, r)
		}
	}
	return a
}

// unsettled judges what is open although all nodes have ended: who ended in peace has settled its runs first. What waits for
// a node is missing at the sink, and named there.
func (a *audit) unsettled(l ledger.Lease, r rules) {
	if at := time.UnixMilli(l.Tick); !l.Pending() && !r.struck[l.NodeName] && !r.lossy.holds(at) {
		a.add("%s %s: run %s of node %s is still open, and that node has ended in peace", l.Job, stamp(at), l.Run, l.NodeName)
	}
}

// ended judges a row of a run.
func (a *audit) ended(row ledger.Row, r rules) {
	switch {
	case row.Outcome == jobs.OutcomeSucceeded:
	case row.Outcome == jobs.OutcomeAbandoned && r.struck[row.NodeName]:
		a.abandoned[row.Run] = true
		a.absent[tickID{row.Job, row.Tick / 1000}] = row.Outcome.String()
	case r.lossy.holds(time.UnixMilli(row.Tick)): // its end was forgotten, or came when nobody knew of its start
		a.absent[tickID{row.Job, row.Tick / 1000}] = row.Outcome.String()
	default:
		a.add("%s %s on %s: %s %s; this scenario cannot cause that", row.Job, stamp(time.UnixMilli(row.Tick)), row.NodeName, row.Outcome, row.Error)
	}
}

// passed judges a row of ticks that did not run. A skipped one needs a run of an earlier tick
// that had not ended then: one whose row was written after this one. Where nobody asked for the tick before that run of
// a dead node was reaped, the row of the run stands before it.
func (a *audit) passed(j job, row ledger.Row, before, later []ledger.Row, r rules) {
	for second := row.Tick / 1000; second <= row.Until/1000; second++ {
		if !j.due(second) {
			continue
		}
		at := time.Unix(second, 0)
		ahead := slices.IndexFunc(later, func(x ledger.Row) bool { return !x.Ranged && x.Tick < row.Tick })
		switch {
		case r.lossy.holds(at):
		case row.Outcome == jobs.OutcomeMissed && r.gap.holds(at):
		case row.Outcome == jobs.OutcomeSkipped && ahead >= 0 && (r.gap.holds(at) || j.waiting(at)):
		case row.Outcome == jobs.OutcomeSkipped && ahead >= 0 &&
			later[ahead].Outcome == jobs.OutcomeAbandoned && r.struck[later[ahead].NodeName]:
		case row.Outcome == jobs.OutcomeSkipped && slices.ContainsFunc(before, func(x ledger.Row) bool {
			held := x.Tick < at.UnixMilli() && x.At > at.UnixMilli()
			return !x.Ranged && held && x.Outcome == jobs.OutcomeAbandoned && r.struck[x.NodeName]
		}):
		default:
			a.add("%s %s: %s, %s; this scenario cannot cause that", j.name, stamp(at), row.Outcome, row.Reason)
			continue
		}
		a.absent[tickID{j.name, second}] = row.Outcome.String()
	}
}

// replaced judges a row of a schedule that gave way to another one, and of its ticks that nobody had run by then.
func (a *audit) replaced(j job, row ledger.Row, r rules) {
	if !slices.ContainsFunc(r.switched[j.name], func(w window) bool { return w.holds(time.UnixMilli(row.At)) }) {
		a.add("%s: its definition was replaced at %s, and %d ticks recorded as superseded; this scenario does not replace it then",
			j.name, stamp(time.UnixMilli(row.At)), row.Count)
		return
	}
	if row.Count == 0 {
		return
	}
	for second := row.Tick / 1000; second <= row.Until/1000; second++ {
		switch at := time.Unix(second, 0); {
		case !j.mayRun(second):
		case !j.waiting(at) && time.UnixMilli(row.At).Sub(at) > startsWithin:
			a.add("%s %s: superseded at %s; it should have run long before that", j.name, stamp(at), stamp(time.UnixMilli(row.At)))
		default:
			a.absent[tickID{j.name, second}] = row.Outcome.String()
		}
	}
}

// entry is what both sides must say of a run.
type entry struct {
	job, node string
	tick      int64 // ms
	token     int64
	shard     int
}

// compare holds the books against the sink: each line needs its record, and each run that is
// recorded as succeeded its lines. A line whose record was forgotten is only noted.
func (b books) compare(all []job, lines []line, lossy window) audit {
	var a audit
	recorded := map[string]entry{}
	for _, l := range b.Open { // an open tick of a sharded job has an id of its own, under which nobody writes
		recorded[l.Run] = entry{l.Job, l.NodeName, l.Tick, l.Token, l.Shard}
	}
	for _, row := range slices.Concat(slices.Collect(maps.Values(b.Rows))...) {
		if !row.Ranged && !row.Whole {
			recorded[row.Run] = entry{row.Job, row.NodeName, row.Tick, row.Token, row.Shard}
		}
	}
	written := map[string]int{}
	for _, l := range lines {
		written[l.run]++
		switch e, ok := recorded[l.run]; {
		case !ok && lossy.holds(l.tick):
			a.unrecorded = append(a.unrecorded, l)
		case !ok:
			a.add("no record of %s", l)
		case e != entry{l.job, l.node, l.tick.UnixMilli(), l.token, l.shard}:
			a.add("the record says job %s tick %s token %d node %s, the sink %s", e.job, stamp(time.UnixMilli(e.tick)), e.token, e.node, l)
		}
	}
	for _, j := range all {
		want := 1
		if j.lasts {
			want = 2
		}
		for _, row := range b.Rows[j.name] {
			if row.Outcome == jobs.OutcomeSucceeded && !row.Whole && written[row.Run] != want {
				a.add("%s %s token %d succeeded on %s as recorded, and wrote %d lines, not %d",
					j.name, stamp(time.UnixMilli(row.Tick)), row.Token, row.NodeName, written[row.Run], want)
			}
		}
	}
	return a
}

// find is the row of one run.
func (b books) find(run string) (ledger.Row, bool) {
	for _, rows := range b.Rows {
		if i := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Run == run }); i >= 0 {
			return rows[i], true
		}
	}
	return ledger.Row{}, false
}
