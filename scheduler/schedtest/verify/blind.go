package verify

import (
	"container/heap"
	"slices"
	"strings"
	"time"
)

// window is when one start may come, both ends included.
type window struct{ from, to time.Time }

// blind forgets which start is which. What it finds beyond what identity found already is either
// a line that is made up, or a fault of this package.
func (t *trial) blind() {
	var due, asked []window
	parts := max(1, t.job.Shards) // each shard has a window of its own
	for _, d := range t.due {
		w := window{d.at, d.deadline}
		if d.excused {
			w.to = latest(w.to, t.Read)
		}
		due = append(due, slices.Repeat([]window{w}, parts)...)
	}
	for _, at := range t.job.Asked {
		asked = append(asked, slices.Repeat([]window{{at, latest(at, t.Read)}}, parts)...)
	}
	var scheduled, byHand []Write
	for _, r := range t.runs {
		for _, w := range r.starts {
			if w.manual() {
				byHand = append(byHand, w)
			} else {
				scheduled = append(scheduled, w)
			}
		}
	}
	if surplus := match(asked, byHand); len(surplus) > t.forgotten(surplus) {
		t.add(KindBlind, time.Time{}, "%d starts by hand and %d requests; left over: %s", len(byHand), len(asked), list(surplus))
	}
	surplus := match(due, scheduled)
	if len(surplus) > t.faulty {
		t.add(KindBlind, time.Time{}, "%d starts and %d ticks; left over: %s", len(scheduled), len(due), list(surplus))
	}
	left := len(due) - (len(scheduled) - len(surplus))
	if absent := t.absent(parts); t.clean() && !t.job.Reshards && left != absent {
		t.add(KindDisagree, time.Time{}, "%d of %d ticks have no start at the sink; by the books %d did not run", left, len(due), absent)
	}
}

// absent is how many due ticks did not run: as many as the books count in rows of several, and
// those that have neither a start nor such a row. Of a sharded job, each shard counts.
func (t *trial) absent(parts int) int {
	n := 0
	for _, c := range t.ranges {
		n += int(c.row.Count) * parts
	}
	for _, d := range t.due {
		if len(d.ranges) == 0 {
			n += parts - min(parts, d.began())
		}
	}
	return n
}

func list(writes []Write) string {
	const most = 3
	var texts []string
	for _, w := range writes[:min(most, len(writes))] {
		texts = append(texts, w.String())
	}
	if len(writes) > most {
		texts = append(texts, "and more")
	}
	return strings.Join(texts, "; ")
}

// match gives each start a window of its own and returns the starts that get none. It goes through
// the starts in time and takes, of the windows that are open, the one that closes first: no other
// choice matches more.
func match(windows []window, starts []Write) (surplus []Write) {
	slices.SortFunc(windows, func(a, b window) int { return a.from.Compare(b.from) })
	slices.SortStableFunc(starts, func(a, b Write) int { return a.At.Compare(b.At) })
	var open closings
	next := 0
	for _, s := range starts {
		for ; next < len(windows) && !windows[next].from.After(s.At); next++ {
			heap.Push(&open, windows[next].to)
		}
		for len(open) > 0 && open[0].Before(s.At) {
			heap.Pop(&open)
		}
		if len(open) == 0 {
			surplus = append(surplus, s)
			continue
		}
		heap.Pop(&open)
	}
	return surplus
}

// closings is a heap of the ends of open windows, the next one on top.
type closings []time.Time

func (c closings) Len() int           { return len(c) }
func (c closings) Less(i, j int) bool { return c[i].Before(c[j]) }
func (c closings) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push is for the heap.
func (c *closings) Push(x any) { *c = append(*c, x.(time.Time)) }

// Pop is for the heap.
func (c *closings) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}

// forgotten is how many of some surplus starts by hand may be runs that Redis had granted before and had
// forgotten: under the id they had, which were counted as excuses before, or as one that was handed back.
func (t *trial) forgotten(surplus []Write) int {
	n := 0
	for _, w := range surplus {
		if t.lossBetween(w.Tick, w.At) {
			n++
		}
	}
	t.report.Excused += max(0, n-t.regranted)
	return max(n, t.regranted)
}
