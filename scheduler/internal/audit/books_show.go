package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// String names a step in a sentence.
func (k step) String() string {
	switch {
	case k.run != nil:
		return fmt.Sprintf("run %s in flight", k.run.ID)
	case k.row.Ranged:
		return fmt.Sprintf("%s row of %s from %s", k.row.Outcome, ticks(k.row.Count), stamp(k.prev))
	default:
		return fmt.Sprintf("run %s of tick %s", k.row.Run, stamp(k.row.Tick))
	}
}

func ticks(n int64) string {
	if n == 1 {
		return "1 tick"
	}
	return fmt.Sprintf("%d ticks", n)
}

// show renders a record as evidence.
func show(record any) string {
	switch r := record.(type) {
	case *step:
		return show(*r)
	case step:
		if r.run != nil {
			return showRun(r.run)
		}
		return showRow(r.row)
	case *grant:
		return show(r.record)
	case grant:
		return show(r.record)
	case ledger.Row:
		return showRow(&r)
	case *ledger.Row:
		return showRow(r)
	case ledger.Run:
		return showRun(&r)
	case *ledger.Run:
		return showRun(r)
	case cursorOf:
		return fmt.Sprintf("entry: cursor %s, last token %d", stamp(orNever(r.Cursor)), r.Token)
	case baseOf:
		return "entry: the recorded chain begins at " + stamp(orNever(r.Base))
	default:
		return fmt.Sprint(r)
	}
}

func showRow(r *ledger.Row) string {
	if r.Ranged {
		return showRange(r)
	}
	words := []string{"run " + r.Run, "tick " + stamp(r.Tick), fmt.Sprintf("attempt %d", r.Attempt)}
	if r.IsTick {
		words = append(words, fmt.Sprintf("all %d shards", r.Shards), r.Outcome.String()+because(r.Reason))
		return join(append(words, "opened "+stamp(r.Started), "closed "+stamp(r.At), r.Trigger, span(r.Prev, r.Next)))
	}
	if r.Shards > 1 {
		words = append(words, fmt.Sprintf("shard %d of %d", r.Shard, r.Shards))
	}
	words = append(words, fmt.Sprintf("token %d", r.Token), on(r.NodeName, r.Node), r.Outcome.String()+because(r.Reason))
	if r.Started != 0 {
		words = append(words, "started "+stamp(r.Started))
	}
	return join(append(words, "ended "+stamp(r.At), r.Trigger, span(r.Prev, r.Next)))
}

func showRange(r *ledger.Row) string {
	words := []string{r.Outcome.String() + because(r.Reason)}
	switch {
	case r.Count > 0:
		words = append(words, fmt.Sprintf("ticks %s to %s, %d of them", stamp(r.Tick), stamp(r.Until), r.Count))
	case turns(r):
		words = append(words, "no tick")
	default:
		words = append(words, fmt.Sprintf("ticks %s to %s, none of them", stamp(r.Tick), stamp(r.Until)))
	}
	if r.Note != "" {
		words = append(words, "noted "+r.Note)
	}
	return join(append(words, "recorded "+stamp(r.At), fmt.Sprintf("cursor %s to %s", stamp(orNever(r.Prev)), stamp(orNever(r.Next)))))
}

func showRun(l *ledger.Run) string {
	words := []string{"run " + l.ID, "tick " + stamp(l.Tick), fmt.Sprintf("attempt %d", l.Attempt)}
	if l.IsOpenTick {
		words = append(words, fmt.Sprintf("%d of %d shards to end", l.Left, l.Shards), "opened "+stamp(l.Granted))
		return join(append(words, l.Trigger, span(l.Prev, l.Next)))
	}
	if l.Shards > 1 {
		words = append(words, fmt.Sprintf("shard %d of %d", l.Shard, l.Shards))
	}
	if l.Pending() {
		words = append(words, "pending since "+stamp(l.Granted))
	} else {
		words = append(words, fmt.Sprintf("token %d", l.Token), on(l.NodeName, l.Node), "in flight", "granted "+stamp(l.Granted))
	}
	return join(append(words, l.Trigger, span(l.Prev, l.Next)))
}

func span(prev, next int64) string {
	if prev == 0 {
		return ""
	}
	return fmt.Sprintf("cursor %s to %s", stamp(prev), stamp(orNever(next)))
}

func on(name, id string) string {
	if name == "" && id == "" {
		return "on no node"
	}
	return fmt.Sprintf("on %s (%s)", name, id)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return "(" + reason + ")"
}

// join leaves out empty words.
func join(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// cursorOf and baseOf render the two ends of the chain as the entry has them.
type (
	cursorOf ledger.Entry
	baseOf   ledger.Entry
)

// grant holds the fields that a row and a run in flight have in common.
type grant struct {
	run, request, trigger string
	of                    string // a shard's tick id
	tick                  int64
	shard, shards         int
	attempt               int
	node                  string // its name
	token                 int64
	step                  bool // granted through the cursor
	row                   int  // its place in the history; after all rows while in flight
	ended                 bool
	outcome               jobs.Outcome
	record                any // the row or the run
}

// grantsOf returns all runs of a job: runs of the history first, in its order.
func grantsOf(rows []ledger.Row, open []ledger.Run) []grant {
	all := make([]grant, 0, len(rows)+len(open))
	for i := range rows {
		if r := &rows[i]; !r.Ranged && !r.IsTick {
			all = append(all, rowGrant(r, i))
		}
	}
	for i := range open {
		if l := &open[i]; !l.IsOpenTick {
			all = append(all, leaseGrant(l, len(rows)+i))
		}
	}
	return all
}

func rowGrant(r *ledger.Row, at int) grant {
	return grant{run: r.Run, request: r.Request, trigger: r.Trigger, of: r.TickID, tick: r.Tick, shard: r.Shard, shards: r.Shards, attempt: r.Attempt,
		node: r.NodeName, token: r.Token, step: r.Prev != 0, row: at, ended: true, outcome: r.Outcome, record: r}
}

func leaseGrant(l *ledger.Run, at int) grant {
	return grant{run: l.ID, request: l.Request, trigger: l.Trigger, of: l.TickID, tick: l.Tick, shard: l.Shard, shards: l.Shards, attempt: l.Attempt,
		node: l.NodeName, token: l.Token, step: l.Prev != 0, row: at, record: l}
}
