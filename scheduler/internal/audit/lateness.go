package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// occupied returns the spans in which a run of the job was seen going. The runs of a sharded tick
// count as one; runs of the tick `but` do not count. Runs that may overlap occupy nothing.
func (t *trial) occupied(but *tick) []Span {
	if t.job.all(allows) || t.job.StartsOnly {
		return nil
	}
	var all []Span
	split := make(map[together]*parts)
	for _, r := range t.runs {
		if len(r.starts) == 0 {
			continue
		}
		s := Span{r.starts[0].At, t.over(r)}
		switch w := r.starts[0]; {
		case w.Shards < 2:
			all = append(all, t.untilRerun(r, s))
		case but == nil || t.requested(r) || !w.Tick.Equal(but.at):
			at := t.together(r)
			split[at] = split[at].with(s, len(r.ends) > 0 && !r.going)
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

// untilRerun extends a run's span to the start of the attempt that follows a crash, or that another
// node makes after a failure: the job is held for that attempt.
func (t *trial) untilRerun(r *run, s Span) Span {
	if r.row == nil || !crashed(r.row) && !t.triedAgain(r.row) {
		return s
	}
	id := ledger.NextAttemptID(r.id)
	next := t.byID[id]
	switch {
	case next == nil && slices.ContainsFunc(t.books.Open, func(l ledger.Run) bool { return l.ID == id }):
		s.Until = t.Read
	case next == nil || t.reran[next.id] && !t.triedAgain(r.row):
	case len(next.starts) > 0:
		s.Until = latest(s.Until, next.starts[0].At)
	case next.row != nil:
		s.Until = latest(s.Until, instant(next.row.At))
	case next.lease != nil:
		s.Until = t.Read
	}
	return s
}

// deadline returns when the job has stood idle for Within since a tick was ready: while another run
// goes on, the tick waits and is not late. busy has the spans of other runs.
func (t *trial) deadline(ready time.Time, busy []Span) time.Time {
	end := ready.Add(t.Within)
	i, _ := slices.BinarySearchFunc(busy, ready, func(s Span, at time.Time) int {
		if s.Until.After(at) {
			return 1
		}
		return -1
	})
	for _, s := range busy[i:] {
		if !s.From.Before(end) {
			break
		}
		end = end.Add(s.Until.Sub(latest(s.From, ready)))
	}
	return end
}

// heldUp reports whether a disturbance may have kept a tick from starting in time: of Redis, of
// every node that may run the tick, of the node that had a run of the job, of the tick before,
// which goes first, or a pause of the job.
func (t *trial) heldUp(d, before *tick) bool {
	from, to := d.ready, d.deadline
	switch {
	case t.pausedBetween(from, to):
		return true
	case before != nil && before.excused && before.accountedAt(t.Read).After(from):
		return true // a queue of late ticks is worked off in order
	case !t.disturbed(from, to):
		return false
	case len(t.Nodes) == 0 || t.allStruck(from, to):
		return true
	case t.lossAfter(from):
		return true // the records that would show it are gone
	}
	if len(t.ups) > 0 { // the upstream's end or its delivery may have been held up
		return true
	}
	for _, row := range t.books.Rows {
		ahead := row.Request == "" && instant(row.Tick).After(d.at) // by schedule, its turn comes later
		if !row.Ranged && !ahead && instant(row.Tick).Before(to) && !instant(row.At).Before(from) && t.struck(from, to, row.NodeName, row.Node, false) {
			return true
		}
	}
	return slices.ContainsFunc(t.books.Open, func(l ledger.Run) bool {
		return instant(l.Tick).Before(to) && t.struck(from, to, l.NodeName, l.Node, false)
	})
}

// allStruck reports whether a disturbance hit Redis, this job, or every node that may run it.
func (t *trial) allStruck(from, to time.Time) bool {
	left := slices.Clone(t.Nodes)
	if t.job.Eligible != nil {
		left = slices.Clone(t.job.Eligible)
	}
	for _, d := range t.Disturbed {
		if !t.acts(d, from, to) {
			continue
		}
		if len(d.Nodes) == 0 || d.Job == t.job.Name {
			return true
		}
		left = slices.DeleteFunc(left, func(n string) bool { return slices.Contains(d.Nodes, n) })
	}
	return len(left) == 0
}

// accountedAt returns when a tick first started, or was recorded as not run; never (the time of
// reading the books) when neither happened. For a sharded tick: when its last shard started, or
// when it was closed.
func (d *tick) accountedAt(never time.Time) time.Time {
	if d.shards() > 1 && len(d.ranges) == 0 {
		if d.began() < d.shards() {
			for _, row := range d.wholes {
				return instant(row.At)
			}
			return never
		}
		var at time.Time
		for _, w := range d.starts {
			at = latest(at, w.At)
		}
		return at
	}
	at := never
	for _, w := range d.starts {
		if w.At.Before(at) {
			at = w.At
		}
	}
	for _, row := range d.ranges {
		if instant(row.At).Before(at) {
			at = instant(row.At)
		}
	}
	return at
}
