package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// kind names what is wrong.
type kind string

// What the verifier finds in the sink.
const (
	double   kind = "DOUBLE"   // a tick ran more than once
	lost     kind = "LOST"     // a tick did not run and nobody recorded why
	early    kind = "EARLY"    // a run started before its tick
	late     kind = "LATE"     // a run started later than the bound
	regress  kind = "TOKEN"    // a job's tokens do not strictly increase
	phantom  kind = "PHANTOM"  // a line of no scheduled tick, or not a line at all
	together kind = "TOGETHER" // a run started while one of the same job had not ended
	mixed    kind = "MIXED"    // the shards of one tick tell different numbers of shards
)

// startsWithin is how late a run may start when a node that lives can take it: promise P6.
const startsWithin = 2 * time.Second

// violation is one broken promise and its evidence.
type violation struct {
	kind kind
	what string
}

func (v violation) String() string { return fmt.Sprintf("%-8s %s", v.kind, v.what) }

// tickID names a tick.
type tickID struct {
	job    string
	second int64
}

// window is a span of time, both ends included; the zero window holds nothing.
type window struct{ from, to time.Time }

func (w window) holds(t time.Time) bool {
	return !w.from.IsZero() && !t.Before(w.from) && !t.After(w.to)
}

// demand is what the schedules ask of the sink, and what may be missing from it.
type demand struct {
	jobs      []job
	must      window              // every due second in it must have run, or be in absent
	stop      time.Time           // no later tick can have been claimed
	within    time.Duration       // how late a run may start; 0 is no bound
	gap       window              // ticks without such a bound
	lossy     window              // ticks that may run twice, because Redis may have forgotten that they ran; tokens still grow in the order of writing
	absent    map[tickID]string   // ticks that did not run, and the recorded reason
	switched  map[string][]window // when the schedule of a job was replaced, see rules
	abandoned map[string]bool     // runs recorded as abandoned, by id: what they still write is stale
}

// findings are the verifier's answer.
type findings struct {
	violations []violation
	wanted     int            // ticks in the window
	ran        int            // of these, in the sink
	absent     map[string]int // of these, by recorded reason
	stale      int            // lines that a guard comparing tokens would have refused
	twice      []pair         // ticks of a lossy window that ran more than once
	vanished   []tickID       // ticks of a lossy window that neither ran nor are recorded
	lags       []time.Duration
}

// pair are two runs of one tick.
type pair struct{ first, second line }

func (f *findings) add(k kind, format string, args ...any) {
	f.violations = append(f.violations, violation{k, fmt.Sprintf(format, args...)})
}

// examine checks the sink's lines, in the order of writing, against the demand, second by second.
func examine(lines []line, d demand) findings {
	f := findings{absent: map[string]int{}}
	byJob := map[string][]line{}
	for _, l := range lines {
		if why := d.unscheduled(l); why != "" {
			f.add(phantom, "%s: %s", why, l)
			continue
		}
		byJob[l.job] = append(byJob[l.job], l)
	}
	for _, j := range d.jobs {
		for _, part := range byShard(byJob[j.name]) {
			f.order(j, part, d)
		}
		begun := starts(byJob[j.name])
		f.times(j, begun, d)
		f.ticks(j, begun, d)
	}
	slices.Sort(f.lags)
	return f
}

// byShard are the lines of each shard of a job, in the order of writing. Each shard is a fence of its own.
func byShard(lines []line) [][]line {
	var parts [][]line
	for _, l := range lines {
		for len(parts) <= l.shard {
			parts = append(parts, nil)
		}
		parts[l.shard] = append(parts[l.shard], l)
	}
	return parts
}

// unscheduled says why no schedule asks for a line's tick, "" when one does.
func (d demand) unscheduled(l line) string {
	i := slices.IndexFunc(d.jobs, func(j job) bool { return j.name == l.job })
	switch {
	case i < 0:
		return "no such job"
	case l.tick.Nanosecond() != 0 || !d.jobs[i].mayRun(l.tick.Unix()):
		return "not a tick of its schedule"
	case l.tick.After(d.stop):
		return "its tick came after all nodes had stopped claiming"
	}
	return ""
}

// order checks what the order of writing tells: tokens only grow, and a run that lasts ends
// before the next one starts.
func (f *findings) order(j job, lines []line, d demand) {
	var top, going line
	for _, l := range lines {
		switch {
		case l.phase == phaseEnd && l.run == going.run:
			going = line{}
		case l.token <= top.token && d.abandoned[l.run]:
			f.stale++
		case l.phase == phaseEnd:
			f.add(phantom, "the end of a run that was not going on: %s", l)
		case l.token <= top.token:
			f.add(regress, "written after token %d: %s", top.token, l)
		default:
			if going.run != "" && !d.abandoned[going.run] {
				f.add(together, "%s, while there was no end of %s", l, going)
			}
			top = l
			if j.lasts {
				going = l
			}
		}
	}
}

// times checks each start against its tick. A run that was abandoned may begin late: its node
// was stopped on the way from the grant to the start.
func (f *findings) times(j job, begun []line, d demand) {
	for _, l := range begun {
		f.lags = append(f.lags, l.lag())
		if l.lag() < 0 {
			f.add(early, "%s", l)
		}
		if d.within > 0 && l.lag() > d.within && !d.gap.holds(l.tick) && !j.waiting(l.tick) && !d.abandoned[l.run] {
			f.add(late, "more than %s: %s", d.within, l)
		}
	}
}

// ticks checks that each tick is there once. Each job is held to the window, and to what came before it from its own
// first tick on.
func (f *findings) ticks(j job, begun []line, d demand) {
	ran := map[int64]int{} // shards that did, by second
	for _, part := range byShard(begun) {
		for second := range f.once(part, d) {
			ran[second]++
		}
	}
	shards, from := f.split(begun), d.must.from
	for _, l := range begun {
		if l.tick.Before(from) {
			from = l.tick
		}
	}
	for second := ceil(from); second <= d.must.to.Unix(); second++ {
		if !j.due(second) {
			continue
		}
		f.wanted++
		reason := d.absent[tickID{j.name, second}]
		switch n := ran[second]; {
		case n > 0 && n == shards[second]:
			f.ran++
		case reason != "":
			f.absent[reason]++
		case d.lossy.holds(time.Unix(second, 0)):
			f.vanished = append(f.vanished, tickID{j.name, second})
		default:
			f.add(lost, "%s %s: %d shards of %d are in the sink, and nothing that this scenario can cause is recorded", j.name, stamp(time.Unix(second, 0)), n, max(1, shards[second]))
		}
	}
}

// once checks that each tick of one shard started once, with tokens that grow from tick to tick, and returns the first
// start of each second.
func (f *findings) once(begun []line, d demand) map[int64]line {
	begun = slices.Clone(begun)
	slices.SortStableFunc(begun, func(a, b line) int { return cmp.Or(a.tick.Compare(b.tick), cmp.Compare(a.no, b.no)) })
	seen := map[int64]line{}
	for i, l := range begun {
		if first, again := seen[l.tick.Unix()]; again {
			if d.lossy.holds(l.tick) && first.run != l.run {
				f.twice = append(f.twice, pair{first, l})
			} else {
				f.add(double, "%s, and %s", first, l)
			}
			continue
		}
		seen[l.tick.Unix()] = l
		// Where a tick runs twice, its second run may be granted after the first run of the next tick.
		if i > 0 && l.token <= begun[i-1].token && !d.lossy.holds(l.tick) {
			f.add(regress, "%s, the tick before it had token %d", l, begun[i-1].token)
		}
	}
	return seen
}

// split is into how many shards each tick was split, by second. All shards of a tick must tell the same.
func (f *findings) split(begun []line) map[int64]int {
	shards := map[int64]int{}
	for _, l := range begun {
		second := l.tick.Unix()
		if n := shards[second]; n != 0 && n != l.shards {
			f.add(mixed, "another shard of the tick says %d shards: %s", n, l)
		}
		shards[second] = max(shards[second], l.shards)
	}
	return shards
}

// ceil is the first full second that is not before t.
func ceil(t time.Time) int64 {
	if t.Nanosecond() == 0 {
		return t.Unix()
	}
	return t.Unix() + 1
}

// quantile is the value below which a share q of the sorted lags lies; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
