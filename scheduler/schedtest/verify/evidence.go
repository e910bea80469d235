package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// known is the run of that id, made if need be.
func (t *trial) known(id string) *run {
	r := t.byID[id]
	if r == nil {
		r = &run{id: id, at: -1}
		t.byID[id] = r
	}
	return r
}

// again is the run of a line. A run that was pending keeps its id, so that Redis, when it has
// forgotten the first grant of it, may grant it a second time: that is a run of its own, and counted
// as an excuse. Its record is the one that carries its token.
func (t *trial) again(w Write) *run {
	r := t.known(w.Run)
	if len(r.starts) == 0 || r.starts[0].Token == w.Token || !t.lossBetween(r.starts[0].At, w.At) {
		return r
	}
	other := t.known(regrant(w.Run, w.Token))
	if len(other.starts) == 0 && w.Phase == Start {
		if w.manual() {
			t.report.Excused++
			t.regranted++
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

// readRecords hangs rows and leases on their runs and ticks. A row of a tick that nobody asks for
// is a finding, unless the sink will tell of it.
func (t *trial) readRecords() {
	started := make(map[string]bool, len(t.lines))
	for _, w := range t.lines {
		started[w.Run] = started[w.Run] || w.Phase == Start
	}
	for i, row := range t.rows {
		if row.Ranged {
			t.readRange(i, row)
			continue
		}
		if row.Whole {
			t.readWhole(row)
			continue
		}
		r := t.known(row.Run)
		if r.row != nil && row.Trigger == manual {
			t.add(KindContradiction, instant(row.Tick), "run %s is recorded twice: %s, and %s", row.Run, r.row.Outcome, row.Outcome)
		}
		r.row, r.at = &t.rows[i], i
		if row.Trigger == manual {
			continue
		}
		if d := t.byTick[row.Tick]; d != nil {
			d.rows = append(d.rows, row)
		} else if !started[row.Run] {
			t.add(KindPhantom, instant(row.Tick), "run %s is recorded as %s; no version asks for its tick", row.Run, row.Outcome)
		}
	}
	for i, l := range t.open {
		if l.Whole {
			t.readOpened(l)
			continue
		}
		t.known(l.Run).lease = &t.open[i]
		if d := t.byTick[l.Tick]; d != nil && l.Trigger != manual {
			d.leases = append(d.leases, l)
		}
	}
}

func (t *trial) readRange(i int, row ledger.Row) {
	c := covered{row: row, at: i}
	// A replaced definition is recorded also when no tick of the old one was left.
	if row.Count > 0 || row.Outcome != jobs.OutcomeSuperseded {
		c.ticks = t.cover(row.Tick, row.Until, row.Count)
		if len(c.ticks) == 0 {
			t.add(KindPhantom, instant(row.Tick), "%d ticks up to %s are recorded as %s; no version's ticks begin and end there",
				row.Count, stamp(instant(row.Until)), row.Outcome)
		}
	}
	for _, d := range c.ticks {
		d.ranges = append(d.ranges, row)
	}
	t.ranges = append(t.ranges, c)
}

// readSink hangs lines on their runs and ticks. What belongs to none is a phantom.
func (t *trial) readSink() {
	for i, w := range t.lines {
		r := t.again(w)
		t.of = append(t.of, r)
		if !r.seen {
			t.runs = append(t.runs, r)
			r.seen, r.token = true, w.Token
		}
		r.refused = r.refused || w.Refused
		switch {
		case w.Phase == Start:
			r.starts = append(r.starts, w)
			t.report.Runs++
			if w.manual() {
				continue
			}
			d := t.find(w.Tick)
			if d == nil {
				t.faulty++
				t.add(KindPhantom, w.Tick, "no version asks for the tick of %s", w)
				continue
			}
			d.starts = append(d.starts, w)
		case w.Phase != End:
			t.add(KindPhantom, w.Tick, "a line of no known phase: %s", w)
		case len(r.starts) == 0:
			t.add(KindPhantom, w.Tick, "the end of a run that had not started: %s", w)
			r.end = &t.lines[i]
		case r.end != nil:
			t.add(KindPhantom, w.Tick, "a run ended again: %s", w)
		default:
			r.end = &t.lines[i]
			if s := r.starts[0]; !s.Tick.Equal(w.Tick) || s.Node != w.Node {
				t.add(KindBooks, w.Tick, "two lines of one run tell different things: %s; %s", s, w)
			}
		}
	}
}

// occupied are the spans in which the sink saw a run of the job going. A run that never ended went
// on until it was recorded as ended, or still does. The runs of a sharded tick count as one; those of but do not count.
func (t *trial) occupied(but *tick) []Span {
	if t.job.Overlaps || t.job.StartsOnly {
		return nil
	}
	var all []Span
	split := make(map[together]*parts)
	for _, r := range t.runs {
		if len(r.starts) == 0 {
			continue
		}
		s := Span{r.starts[0].At, t.Read}
		switch {
		case r.end != nil:
			s.Until = r.end.At
		case r.row != nil:
			s.Until = latest(s.From, instant(r.row.At))
		}
		if w := r.starts[0]; w.Shards < 2 {
			all = append(all, s)
		} else if but == nil || w.manual() || !w.Tick.Equal(but.at) {
			split[w.together()] = split[w.together()].with(s, r.end != nil)
		}
	}
	all = append(all, t.spansOf(split)...)
	slices.SortFunc(all, func(a, b Span) int { return a.From.Compare(b.From) })
	var apart []Span
	for _, s := range all {
		if n := len(apart); n > 0 && !s.From.After(apart[n-1].Until) {
			apart[n-1].Until = latest(apart[n-1].Until, s.Until)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
