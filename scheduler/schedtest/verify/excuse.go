package verify

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// heldUp says whether something was wrong that may have kept a tick from starting in time: with Redis,
// with every node, with the node that had a run of the job, or with the tick before, which goes first.
func (t *trial) heldUp(d, before *tick) bool {
	from, to := d.at, d.deadline
	switch {
	case before != nil && before.excused && before.answered(t.Read).After(from):
		return true // a queue of late ticks is worked off in order
	case !t.disturbed(from, to):
		return false
	case len(t.Nodes) == 0 || t.allStruck(from, to):
		return true
	case t.lossAfter(from):
		return true // the records that would tell are gone
	}
	for _, row := range t.rows {
		if !row.Ranged && instant(row.Tick).Before(to) && !instant(row.At).Before(from) && t.struck(from, to, row.NodeName, row.Node, false) {
			return true
		}
	}
	return slices.ContainsFunc(t.open, func(l ledger.Lease) bool {
		return instant(l.Tick).Before(to) && t.struck(from, to, l.NodeName, l.Node, false)
	})
}

// allStruck says whether something was wrong with Redis, with this job, or with all nodes.
func (t *trial) allStruck(from, to time.Time) bool {
	left := slices.Clone(t.Nodes)
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

// answered is when a tick first started, or was recorded as not run; never: when the books were read.
func (d *tick) answered(never time.Time) time.Time {
	if d.shards() > 1 && len(d.ranges) == 0 {
		return d.answeredWhole(never)
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
