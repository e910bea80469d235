package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// part names a line's shard, for people.
func (w Write) part() string {
	if w.Shards < 2 {
		return ""
	}
	return fmt.Sprintf(" shard %d of %d", w.Shard, w.Shards)
}

// fence names what a line's token is compared for: shards of a job write in any order.
func (w Write) fence() string {
	if w.Shards < 2 {
		return ""
	}
	return fmt.Sprint("shard ", w.Shard)
}

// together names what runs at once: a sharded tick, or one asked for by hand.
type together struct {
	tick   int64
	manual bool
}

func (w Write) together() together { return together{w.Tick.UnixMilli(), w.manual()} }

// beside says whether two starts are different shards of one tick.
func (w Write) beside(other Write) bool {
	return w.Shards > 1 && other.Shards > 1 && w.Shard != other.Shard && w.together() == other.together()
}

// shards is into how many parts a tick was split, as far as anything tells; 0 when nothing does.
func (d *tick) shards() int {
	n := 0
	for _, w := range d.starts {
		n = max(n, w.Shards)
	}
	for _, rows := range [][]ledger.Row{d.rows, d.wholes} {
		for _, r := range rows {
			n = max(n, r.Shards)
		}
	}
	for _, leases := range [][]ledger.Lease{d.leases, d.opened} {
		for _, l := range leases {
			n = max(n, l.Shards)
		}
	}
	return n
}

// began is how many different shards of a tick started.
func (d *tick) began() int {
	n := 0
	for i, w := range d.starts {
		if !slices.ContainsFunc(d.starts[:i], func(x Write) bool { return x.Shard == w.Shard }) {
			n++
		}
	}
	return n
}

// answeredWhole is when the last shard started, or the tick was closed.
func (d *tick) answeredWhole(never time.Time) time.Time {
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

// readWhole hangs a sharded tick's own row on its tick.
func (t *trial) readWhole(row ledger.Row) {
	if before, twice := t.wholes[row.Run]; twice {
		t.add(KindContradiction, instant(row.Tick), "tick %s is closed twice: %s, and %s", row.Run, before.Outcome, row.Outcome)
	}
	t.wholes[row.Run] = row
	d := t.byTick[row.Tick]
	switch {
	case row.Trigger == manual:
	case d != nil:
		d.wholes = append(d.wholes, row)
	default:
		t.add(KindPhantom, instant(row.Tick), "a tick of %d shards is recorded as %s; no version asks for it", row.Shards, row.Outcome)
	}
}

func (t *trial) readOpened(l ledger.Lease) {
	t.opened[l.Run] = l
	if d := t.byTick[l.Tick]; d != nil && l.Trigger != manual {
		d.opened = append(d.opened, l)
	}
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
	extend := func(tick int64, trigger string, shards int, until time.Time) {
		if p := split[together{tick, trigger == manual}]; p != nil && p.ended < shards {
			p.Until = latest(p.Until, until)
		}
	}
	for _, row := range t.wholes {
		extend(row.Tick, row.Trigger, row.Shards, instant(row.At))
	}
	for _, l := range t.opened {
		extend(l.Tick, l.Trigger, l.Shards, t.Read)
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

// shardContradictions judges how often a sharded tick, and each shard of it, is recorded.
func (t *trial) shardContradictions(d *tick) {
	if len(d.starts) > 0 && len(d.ranges) > 0 {
		t.add(KindContradiction, d.at, "recorded as %s (%s), but %s", d.ranges[0].Outcome, d.ranges[0].Reason, d.starts[0])
		return
	}
	if n := len(d.wholes) + len(d.opened) + len(d.ranges); n > 1 {
		t.add(KindContradiction, d.at, "as a whole recorded %d times: %d times closed, %d times open, %d rows of ticks that did not run",
			n, len(d.wholes), len(d.opened), len(d.ranges))
	}
	records, runs := make(map[int]int), make(map[int]map[string]bool)
	for _, r := range d.rows {
		records[r.Shard]++
	}
	for _, l := range d.leases {
		records[l.Shard]++
	}
	for _, w := range d.starts {
		if runs[w.Shard] == nil {
			runs[w.Shard] = make(map[string]bool)
		}
		runs[w.Shard][w.Run] = true
	}
	for shard := range d.shards() {
		if n := records[shard]; n > max(1, len(runs[shard])) {
			t.add(KindContradiction, d.at, "shard %d is recorded %d times; %d runs started", shard, n, len(runs[shard]))
		}
	}
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
	if len(d.ranges) > 0 {
		return passedOver(d.ranges[0].Outcome)
	}
	for shard := range d.shards() {
		switch {
		case began[shard]:
		case slices.ContainsFunc(d.rows, func(r ledger.Row) bool { return r.Shard == shard }):
			verdict = Unstarted
		case slices.ContainsFunc(d.leases, func(l ledger.Lease) bool { return l.Shard == shard }):
			verdict = Pending
		case d.at.Before(t.Books.TrimmedBefore[t.job.Name]):
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
	first, told := make(map[together]Write), make(map[together]bool)
	for _, w := range t.lines {
		before, known := first[w.together()]
		switch {
		case w.Phase != Start:
		case !known:
			first[w.together()] = w
		case max(1, w.Shards) != max(1, before.Shards) && !told[w.together()]:
			told[w.together()] = true
			t.add(KindMixed, w.Tick, "%d shards: %s; and %d: %s", max(1, before.Shards), before, max(1, w.Shards), w)
		}
	}
}

// severity orders what may become of a shard, from the best to the worst.
var severity = []jobs.Outcome{
	jobs.OutcomeSucceeded, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost, jobs.OutcomeAbandoned,
}

// sharded holds what is recorded of sharded ticks against what is recorded of their shards.
func (t *trial) sharded() {
	ends := make(map[string]map[int]ledger.Row)
	for i, row := range t.rows {
		switch {
		case row.Whole:
			t.closed(row, ends[row.Run])
		case row.Of == "":
		case t.wholes[row.Of].Run == "" && t.opened[row.Of].Run == "":
			if !trimmed(t.Books.TrimmedBefore[t.job.Name], Write{Tick: instant(row.Tick)}) {
				t.add(KindBooks, instant(row.Tick), "run %s is recorded as a shard of %s, and there is no such tick", row.Run, row.Of)
			}
		default:
			if ends[row.Of] == nil {
				ends[row.Of] = make(map[int]ledger.Row)
			}
			ends[row.Of][row.Shard] = t.rows[i]
		}
	}
	for _, l := range t.open {
		if l.Whole && !slices.ContainsFunc(t.open, func(x ledger.Lease) bool { return x.Of == l.Run }) {
			t.add(KindBooks, instant(l.Tick), "tick %s is open, and none of its %d shards is", l.Run, l.Shards)
		}
	}
}

// closed checks a sharded tick that was closed against the ends of its shards, which were recorded before.
func (t *trial) closed(row ledger.Row, ends map[int]ledger.Row) {
	if len(ends) != row.Shards {
		if !trimmed(t.Books.TrimmedBefore[t.job.Name], Write{Tick: instant(row.Tick)}) {
			t.add(KindBooks, instant(row.Tick), "tick %s of %d shards is closed after %d of them had ended", row.Run, row.Shards, len(ends))
		}
		return
	}
	worst, bad := 0, 0
	for _, end := range ends {
		worst = max(worst, slices.Index(severity, end.Outcome))
		if end.Outcome != jobs.OutcomeSucceeded {
			bad++
		}
	}
	reason := ""
	if bad > 0 {
		reason = fmt.Sprintf("%d of %d shards did not succeed", bad, row.Shards)
	}
	if row.Outcome != severity[worst] || row.Reason != reason {
		t.add(KindBooks, instant(row.Tick), "tick %s is recorded as %s (%s); of its shards the worst is %s, and %d did not succeed",
			row.Run, row.Outcome, row.Reason, severity[worst], bad)
	}
}
