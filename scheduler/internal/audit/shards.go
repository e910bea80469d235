package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// together names what runs at once: a sharded tick, or one asked for by hand.
type together struct {
	tick  int64
	asked bool
}

func (t *trial) together(r *run) together {
	return together{r.starts[0].Tick.UnixMilli(), t.requested(r)}
}

// beside says whether two runs are different shards of one tick.
func (t *trial) beside(a, b *run) bool {
	x, y := a.starts[0], b.starts[0]
	return x.Shards > 1 && y.Shards > 1 && x.Shard != y.Shard && t.together(a) == t.together(b)
}

// shards is into how many parts a tick was split, as far as anything tells; 0 when nothing does.
func (d *tick) shards() int {
	n := 0
	for _, w := range d.starts {
		n = max(n, w.Shards)
	}
	for _, r := range slices.Concat(d.rows, d.wholes) {
		n = max(n, r.Shards)
	}
	for _, l := range slices.Concat(d.leases, d.opened) {
		n = max(n, l.Shards)
	}
	return n
}

// began is how many different shards of a tick started.
func (d *tick) began() int {
	seen := make(map[int]bool)
	for _, w := range d.starts {
		seen[w.Shard] = true
	}
	return len(seen)
}

// shardVerdict says what became of a sharded tick: what became of the shard that fared worst.
func (t *trial) shardVerdict(d *tick) Verdict {
	began := make(map[int]bool)
	verdict := Satisfied
	for _, w := range d.starts {
		began[w.Shard] = true
		if w.At.After(d.deadline) {
			verdict = Delayed
		}
	}
	for shard := range d.shards() {
		switch {
		case began[shard]:
		case slices.ContainsFunc(d.rows, func(r *ledger.Row) bool { return r.Shard == shard }):
			verdict = Unstarted
		case slices.ContainsFunc(d.leases, func(l *ledger.Lease) bool { return l.Shard == shard }):
			verdict = Pending
		case t.trimmed(d.at) || t.check.cut && len(d.wholes) > 0:
			return Trimmed
		case t.lossAfter(d.at):
			t.report.Excused++
			return Vanished
		default:
			t.add(KindLost, d.at, "shard %d of %d: no start, no record", shard, d.shards())
			return Vanished
		}
	}
	return verdict
}

// mixed checks that a tick is split into one number of shards: it is all of one definition.
func (t *trial) mixed() {
	first, reported := make(map[together]Write), make(map[together]bool)
	for _, r := range t.runs {
		if len(r.starts) == 0 || t.repeatedRun(r) {
			continue
		}
		w, at := r.starts[0], t.together(r)
		before, known := first[at]
		switch {
		case !known:
			first[at] = w
		case max(1, w.Shards) != max(1, before.Shards) && !reported[at]:
			reported[at] = true
			t.add(KindMixed, w.Tick, "%d shards: %s; and %d: %s", max(1, before.Shards), before, max(1, w.Shards), w)
		}
	}
}

// repeatedRun says that an operator asked for the run, or the cursor was set back before it: then its tick is opened
// anew, by the definition of that time.
func (t *trial) repeatedRun(r *run) bool {
	if t.job.Rewound || t.reran[r.id] {
		return true
	}
	g, _ := r.record()
	return t.reran[g.of]
}

// parts are the runs of a sharded tick, put together.
type parts struct {
	Span
	ended int
}

func (p *parts) with(s Span, ended bool) *parts {
	if p == nil {
		p = &parts{Span: s}
	}
	if s.From.Before(p.From) {
		p.From = s.From
	}
	p.Until = latest(p.Until, s.Until)
	if ended {
		p.ended++
	}
	return p
}

// spansOf are when sharded ticks were going. One of which not every shard wrote that it ended went on until
// it was recorded as closed, or still does.
func (t *trial) spansOf(split map[together]*parts) []Span {
	extend := func(tick int64, asked bool, shards int, until time.Time) {
		if p := split[together{tick, asked}]; p != nil && (p.ended < shards || t.retries()) {
			p.Until = latest(p.Until, until)
		}
	}
	for i := range t.books.Rows {
		if r := &t.books.Rows[i]; r.Whole {
			extend(r.Tick, asked(r.Request, r.Trigger), r.Shards, instant(r.At))
		}
	}
	for i := range t.books.Open {
		if l := &t.books.Open[i]; l.Whole {
			extend(l.Tick, asked(l.Request, l.Trigger), l.Shards, t.Read)
		}
	}
	all := make([]Span, 0, len(split))
	for _, p := range split {
		all = append(all, p.Span)
	}
	return all
}

// busyBut is when the job was busy with something else than a tick: shards do not wait for each other.
func (t *trial) busyBut(d *tick) []Span {
	if d.shards() < 2 {
		return t.busy
	}
	return t.occupied(d)
}
