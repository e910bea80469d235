package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

const manual = "manual"

// chainMost bounds how many attempts and hand-backs of one request are derived.
const chainMost = 32

// readRequests collects the ids of all runs that may result from requests by hand: the shards of a
// run, and its successors after a hand-back or a rerun.
func (t *trial) readRequests() {
	shards := t.job.most(func(d jobs.Definition) int { return d.Shards })
	for _, a := range t.job.Asked {
		chain(a.Run, shards, t.byHand)
	}
	for _, id := range t.job.Reruns {
		chain(id, shards, t.reran)
	}
}

// chain adds an id, its shards' ids, and the ids of their successors.
func chain(id string, shards int, to map[string]bool) {
	for range chainMost {
		to[id] = true
		for shard := 0; shards > 1 && shard < shards; shard++ {
			chain(claim.ShardRun(id, shard), 0, to)
		}
		id = ledger.NextAttemptID(id)
	}
}

// known returns the run of an id, made if need be.
func (t *trial) known(id string) *run {
	r := t.byID[id]
	if r == nil {
		r = &run{id: id, at: -1}
		t.byID[id] = r
	}
	return r
}

// requested reports whether a run results from a request by hand, so that its tick is not the
// schedule's.
func (t *trial) requested(r *run) bool {
	if g, known := r.record(); known {
		return asked(g.request, g.trigger)
	}
	return t.byHand[r.id] || len(r.starts) > 0 && asked("", r.starts[0].Trigger)
}

// record returns the run's row, or its record in flight; false when there is neither.
func (r *run) record() (grant, bool) {
	switch {
	case r.row != nil:
		return rowGrant(r.row, r.at), true
	case r.lease != nil:
		return leaseGrant(r.lease, r.at), true
	}
	return grant{}, false
}

// wrote returns the run of a line. A pending run keeps its id, so Redis may grant it a second time
// after it forgot the first grant. The second grant is a run of its own, counted as an excuse; its
// record is the record with its token.
func (t *trial) wrote(w Write) *run {
	r := t.known(w.Run)
	if len(r.starts) == 0 || r.starts[0].Token == w.Token || !t.lossBetween(r.starts[0].At, w.At) {
		return r
	}
	other := t.known(regrant(w.Run, w.Token))
	if len(other.starts) == 0 && w.Phase == Start {
		if t.requested(r) {
			t.report.Excused++
			t.byHand[other.id] = true
		}
		if r.row != nil && r.row.Token == w.Token {
			other.row, other.at, r.row, r.at = r.row, r.at, nil, -1
		}
		if r.lease != nil && r.lease.Token == w.Token {
			other.lease, r.lease = r.lease, nil
		}
	}
	return other
}

func regrant(run string, token int64) string { return fmt.Sprintf("%s with token %d", run, token) }

// readRecords assigns rows and runs in flight to their runs.
func (t *trial) readRecords() {
	for i := range t.books.Rows {
		row := &t.books.Rows[i]
		if row.Ranged || row.IsTick {
			continue
		}
		r := t.known(row.Run)
		r.row, r.at = row, i
	}
	for i := range t.books.Open {
		if l := &t.books.Open[i]; !l.IsOpenTick {
			t.known(l.ID).lease = l
		}
	}
}

// readWrites assigns lines to their runs.
func (t *trial) readWrites() {
	for _, w := range t.lines {
		r := t.wrote(w)
		t.of = append(t.of, r)
		if len(r.starts)+len(r.ends) == 0 {
			t.runs = append(t.runs, r)
		}
		r.refused = r.refused || w.Refused
		switch {
		case w.Phase == Start:
			if len(r.starts) == 0 {
				t.report.Runs++
			}
			r.starts, r.going = append(r.starts, w), true
		case w.Phase != End:
			t.add(KindPhantom, w.Tick, "a line of no known phase: %s", w)
		case !r.going:
			t.add(KindPhantom, w.Tick, "the end of a try that had not started, or had ended: %s", w)
		default:
			r.ends, r.going = append(r.ends, w), false
			if s := r.starts[len(r.starts)-1]; !s.Tick.Equal(w.Tick) || s.Node != w.Node || s.Try != w.Try {
				t.add(KindBooks, w.Tick, "two lines of one run tell different things: %s; %s", s, w)
			}
		}
	}
}

// place assigns runs, rows and runs in flight to the due ticks. Evidence of no due tick is a
// phantom.
func (t *trial) place() {
	for i := range t.books.Rows {
		switch row := &t.books.Rows[i]; {
		case row.Ranged:
			t.placeRange(i, row)
		case asked(row.Request, row.Trigger):
		default:
			d := t.byTick[row.Tick]
			switch {
			case d == nil && (t.forgotten(row.Tick) || t.beforeTheFirst(instant(row.Tick))):
			case d == nil && (row.IsTick || len(t.known(row.Run).starts) == 0):
				t.add(KindPhantom, instant(row.Tick), "run %s is recorded as %s; no version asks for its tick", row.Run, row.Outcome)
			case d == nil: // judged by its writes
			case row.IsTick:
				d.wholes = append(d.wholes, row)
			default:
				d.rows = append(d.rows, row)
			}
		}
	}
	for i := range t.books.Open {
		l := &t.books.Open[i]
		d := t.byTick[l.Tick]
		switch {
		case d == nil || asked(l.Request, l.Trigger):
		case l.IsOpenTick:
			d.opened = append(d.opened, l)
		default:
			d.leases = append(d.leases, l)
		}
	}
	for _, r := range t.runs {
		if len(r.starts) == 0 {
			continue
		}
		w := r.starts[0]
		switch d := t.find(w.Tick); {
		case t.requested(r):
			if w.At.Before(w.Tick) {
				t.add(KindEarly, w.Tick, "%v before the instant that was asked for: %s", w.Tick.Sub(w.At), w)
			}
			if r.backfilled() && t.fills(w) {
				continue
			}
			if !t.reran[w.Run] && (len(t.job.Asked) == 0 || t.job.Asked[0].Run != "" && !t.byHand[w.Run] && !t.byHand[r.id]) {
				t.add(KindPhantom, w.Tick, "nobody asked for it: %s", w)
			}
		case d == nil && (t.forgotten(w.Tick.UnixMilli()) || t.beforeTheFirst(w.Tick)):
		case d == nil:
			t.add(KindPhantom, w.Tick, "no version asks for the tick of %s", w)
		default:
			d.starts = append(d.starts, w)
		}
	}
}

// beforeTheFirst reports whether a tick of the schedule is from before the job existed, so that
// only a rewind can have led back to it.
func (t *trial) beforeTheFirst(tick time.Time) bool {
	return t.job.Rewound && slices.ContainsFunc(t.job.Versions, func(v Version) bool {
		return v.Schedule != nil && tick.Before(v.Possible.From) && v.Schedule.Next(tick.Add(-time.Millisecond)).Equal(tick)
	})
}

// forgotten reports whether the result of an upstream's tick may no longer be recorded.
func (t *trial) forgotten(tick int64) bool {
	if len(t.ups) == 0 {
		return false
	}
	at := instant(tick)
	if t.lossAfter(at) {
		t.report.Excused++
		return true
	}
	return t.upTrimmed(at)
}

// upTrimmed reports whether the record of an instant may have left the history of a direct or
// indirect upstream.
func (t *trial) upTrimmed(at time.Time) bool {
	return slices.ContainsFunc(t.ups, func(up *trial) bool { return up.trimmed(at) || up.upTrimmed(at) })
}

func (t *trial) placeRange(i int, row *ledger.Row) {
	c := covered{row: row, at: i}
	// A replaced definition, or a cursor set back, is recorded also when no tick was left.
	if row.Count > 0 || row.Outcome != jobs.OutcomeSuperseded {
		c.ticks = t.cover(row.Tick, row.Until, row.Count)
		switch {
		case len(c.ticks) > 0 || t.trimmed(instant(row.Tick)):
		case t.forgotten(row.Tick): // the ticks that are still known
			for _, d := range t.due {
				if ms := d.at.UnixMilli(); row.Tick <= ms && ms <= row.Until {
					c.ticks = append(c.ticks, d)
				}
			}
		default:
			t.add(KindPhantom, instant(row.Tick), "%d ticks up to %s are recorded as %s; no version's ticks begin and end there",
				row.Count, instantText(instant(row.Until)), row.Outcome)
		}
	}
	for _, d := range c.ticks {
		d.ranges = append(d.ranges, row)
	}
	t.ranges = append(t.ranges, c)
}

// over returns when a run ended: by its writes, the last end of a try when no try goes on; else by
// its record. A run that never ended goes on until the books were read.
func (t *trial) over(r *run) time.Time {
	if n := len(r.ends); n > 0 && !r.going && !t.retries() {
		return r.ends[n-1].At
	}
	switch {
	case r.row != nil:
		return latest(r.starts[0].At, instant(r.row.At))
	case len(r.ends) > 0 && !r.going && r.lease == nil:
		return r.ends[len(r.ends)-1].At
	default:
		return t.Read
	}
}

// retries reports whether a run may continue after the end of a try.
func (t *trial) retries() bool {
	return t.job.any(func(d jobs.Definition) bool { return d.Retry.Max > 0 })
}

// crashed reports whether on_crash: rerun follows such an end with another attempt.
func crashed(row *ledger.Row) bool {
	return slices.Contains([]jobs.Outcome{jobs.OutcomeAbandoned, jobs.OutcomeLost}, row.Outcome) ||
		row.Outcome == jobs.OutcomeCancelled && row.Reason == ledger.ReasonDraining
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
