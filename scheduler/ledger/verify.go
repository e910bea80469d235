package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// never is where a cursor stands whose schedule has no more ticks: behind all instants.
const never = math.MaxInt64

func orNever(ms int64) int64 {
	if ms == 0 {
		return never
	}
	return ms
}

// link is one recorded step of a job's cursor.
type link struct {
	era        int
	prev, next int64
	what       string
}

// chain returns the steps that the books of a job show, in their order. A step of a replaced
// definition may lead back, though never behind a tick that was accounted for; it begins an era.
// Ranges stand in the order of their steps; a run's row stands where the run ended, and belongs
// to the last era that begins at or before its tick. One that belongs to none lies before base.
func chain(e Entry, rows []Row, open []Lease) []link {
	eras := []int64{orNever(e.Base)}
	var links []link
	for _, r := range rows {
		if r.Ranged {
			k := link{len(eras) - 1, orNever(r.Prev), orNever(r.Next), describe(r)}
			links = append(links, k)
			if k.next < k.prev {
				eras = append(eras, k.next)
			}
		}
	}
	ran := func(prev, next int64, what string) {
		for era, begin := range slices.Backward(eras) {
			if prev != 0 && begin <= prev {
				links = append(links, link{era, prev, orNever(next), what})
				return
			}
		}
	}
	for _, r := range rows {
		if !r.Ranged {
			ran(r.Prev, r.Next, describe(r))
		}
	}
	for _, l := range open {
		if l.Job == e.Job {
			ran(l.Prev, l.Next, "run "+l.Run+" in flight")
		}
	}
	slices.SortStableFunc(links, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.era, b.era), cmp.Compare(a.prev, b.prev))
	})
	return links
}

// Chain checks one job's books and returns what is wrong with them, nothing when all is well:
// the steps recorded in its rows and filled by its runs in flight must lead, without gap or
// overlap, from the entry's base to its cursor, and no run or token may stand there twice.
func Chain(e Entry, rows []Row, open []Lease) []string {
	var wrong []string
	at := orNever(e.Base)
	for _, k := range chain(e, rows, open) {
		switch {
		case k.prev > at:
			wrong = append(wrong, fmt.Sprintf("gap: nothing recorded from %s to %s (%s)", stamp(at), stamp(k.prev), k.what))
		case k.prev < at:
			wrong = append(wrong, fmt.Sprintf("overlap: %s begins at %s, the step before it ended at %s", k.what, stamp(k.prev), stamp(at)))
		}
		at = k.next
	}
	if cursor := orNever(e.Cursor); at != cursor {
		wrong = append(wrong, fmt.Sprintf("the chain ends at %s, the cursor stands at %s", stamp(at), stamp(cursor)))
	}
	return append(wrong, doubles(rows)...)
}

// doubles finds runs, tokens and (tick, shard, attempt) that stand in more than one row.
func doubles(rows []Row) []string {
	var wrong []string
	seen := make(map[string]bool)
	for _, r := range rows {
		if r.Ranged {
			continue
		}
		names := []string{"run " + r.Run, fmt.Sprint("token ", r.Token)}
		if r.Request == "" {
			names = append(names, fmt.Sprintf("tick %s shard %d attempt %d", stamp(r.Tick), r.Shard, r.Attempt))
		}
		for _, name := range names {
			if seen[name] {
				wrong = append(wrong, "twice: "+name)
			}
			seen[name] = true
		}
	}
	return wrong
}

func describe(r Row) string {
	if r.Ranged {
		return fmt.Sprintf("%s row of %d ticks from %s", r.Outcome, r.Count, stamp(r.Tick))
	}
	return fmt.Sprintf("run %s of tick %s", r.Run, stamp(r.Tick))
}

func stamp(ms int64) string {
	if ms == never {
		return "never"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
