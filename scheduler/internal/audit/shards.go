package audit

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// together names the shards that run at once: a scheduled tick's, or a request's.
type together struct {
	tick  int64
	asked bool
}

func (t *trial) together(r *run) together {
	return together{r.starts[0].Tick.UnixMilli(), t.requested(r)}
}

// beside reports whether two runs are different shards of one tick.
func (t *trial) beside(a, b *run) bool {
	x, y := a.starts[0], b.starts[0]
	return x.Shards > 1 && y.Shards > 1 && x.Shard != y.Shard && t.together(a) == t.together(b)
}

// shards returns into how many parts a tick was split, by all evidence; 0 without any.
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

// began returns how many different shards of a tick started.
func (d *tick) began() int {
	seen := make(map[int]bool)
	for _, w := range d.starts {
		seen[w.Shard] = true
	}
	return len(seen)
}

// shardVerdict returns the verdict of a sharded tick: the verdict of its worst shard.
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
		case slices.ContainsFunc(d.leases, func(l *ledger.Run) bool { return l.Shard == shard }):
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

// mixed checks that a tick is split into one number of shards: a tick has one definition.
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

// repeatedRun reports whether an operator requested the run, or the cursor was set back before it:
// its tick is then opened anew, by the definition of that time.
func (t *trial) repeatedRun(r *run) bool {
	if t.job.Rewound || t.reran[r.id] {
		return true
	}
	g, _ := r.record()
	return t.reran[g.of]
}

// parts are the combined runs of a sharded tick.
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

// spansOf returns when sharded ticks were going. A tick with a shard that wrote no end went on
// until the tick was recorded as closed, or still goes on.
func (t *trial) spansOf(split map[together]*parts) []Span {
	extend := func(tick int64, asked bool, shards int, until time.Time) {
		if p := split[together{tick, asked}]; p != nil && (p.ended < shards || t.retries()) {
			p.Until = latest(p.Until, until)
		}
	}
	for i := range t.books.Rows {
		if r := &t.books.Rows[i]; r.IsTick {
			extend(r.Tick, asked(r.Request, r.Trigger), r.Shards, instant(r.At))
		}
	}
	for i := range t.books.Open {
		if l := &t.books.Open[i]; l.IsOpenTick {
			extend(l.Tick, asked(l.Request, l.Trigger), l.Shards, t.Read)
		}
	}
	all := make([]Span, 0, len(split))
	for _, p := range split {
		all = append(all, p.Span)
	}
	return all
}

// busyBut returns when the job was busy with other work than the tick: shards do not wait for each
// other.
func (t *trial) busyBut(d *tick) []Span {
	if d.shards() < 2 {
		return t.busy
	}
	return t.occupied(d)
}
