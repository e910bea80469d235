package audit

import (
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// openedOf returns all sharded ticks, ended or not, with the attempt as which each was opened.
func openedOf(rows []ledger.Row, open []ledger.Run) map[string]int {
	all := make(map[string]int)
	for _, r := range rows {
		if r.IsTick {
			all[r.Run] = r.Attempt
		}
	}
	for _, l := range open {
		if l.IsOpenTick {
			all[l.ID] = l.Attempt
		}
	}
	return all
}

// shardOf names a shard of a sharded tick.
type shardOf struct {
	tick  string
	shard int
}

// shards compares sharded ticks with their shards. Each shard belongs to a tick. A closed tick has
// the worst of its shards' last outcomes, and every shard has an end. An open tick's count equals
// the number of its unfinished shards.
func (c *bookCheck) shards() {
	ends, going := make(map[shardOf]grant), make(map[shardOf]bool)
	for _, g := range c.grants {
		if g.of == "" {
			continue
		}
		if _, known := c.opened[g.of]; !known && !c.restored(g.tick) { // its row is younger than its shards' rows
			c.add(P2, g.tick, []any{g}, "run %s is a shard of %s, and there is no such tick", g.run, g.of)
		}
		at := shardOf{g.of, g.shard}
		if !g.ended {
			going[at] = true
		} else if e, ok := ends[at]; !ok || g.attempt > e.attempt {
			ends[at] = g
		}
	}
	c.once()
	for i := range c.rows {
		if r := &c.rows[i]; r.IsTick && !c.restored(r.Tick) {
			c.closed(r, ends, going)
			c.closesLast(i)
		}
	}
	for i := range c.open {
		l := &c.open[i]
		if !l.IsOpenTick {
			continue
		}
		left := 0
		for shard := range l.Shards {
			if going[shardOf{l.ID, shard}] {
				left++
			}
		}
		if left != l.Left && !c.restored(l.Tick) {
			c.add(P2, l.Tick, []any{l}, "%d shards of tick %s are to end, and %d are running or pending", l.Left, l.ID, left)
		}
	}
}

// once finds ticks that were closed twice, or are closed and still open.
func (c *bookCheck) once() {
	first := make(map[string]any)
	for i := range c.rows {
		if r := &c.rows[i]; r.IsTick {
			if before, again := first[r.Run]; again {
				c.add(P2, r.Tick, []any{before, r}, "twice: tick %s is closed", r.Run)
			}
			first[r.Run] = r
		}
	}
	for i := range c.open {
		if l := &c.open[i]; l.IsOpenTick && first[l.ID] != nil {
			c.add(P2, l.Tick, []any{first[l.ID], l}, "tick %s is closed, and is open", l.ID)
		}
	}
}

// complete reports whether every row of a closed tick's shards must still be in the history: a
// range from before the tick was opened is there, and rows leave in their order.
func (c *bookCheck) complete(r *ledger.Row) bool {
	i := slices.IndexFunc(c.steps, func(k step) bool { return k.row == r })
	return !c.cut || i >= 0 && slices.ContainsFunc(c.steps[:i], func(k step) bool { return k.row != nil && k.row.Ranged })
}

// closesLast checks that no shard of the tick which a row closed ended after that row.
func (c *bookCheck) closesLast(row int) {
	r := &c.rows[row]
	for _, g := range c.grants {
		if g.of == r.Run && g.ended && g.row > row {
			c.add(P2, r.Tick, []any{r, g}, "tick %s was closed before its shard %d had ended", r.Run, g.shard)
			return
		}
	}
}

// closed checks one closed tick.
func (c *bookCheck) closed(r *ledger.Row, ends map[shardOf]grant, going map[shardOf]bool) {
	worst := jobs.OutcomeSucceeded
	for shard := range r.Shards {
		at := shardOf{r.Run, shard}
		end, ended := ends[at]
		switch {
		case going[at]:
			c.add(P2, r.Tick, []any{r}, "tick %s is closed, and its shard %d has not ended", r.Run, shard)
			return
		case !ended && !c.complete(r):
			return
		case !ended:
			c.add(P2, r.Tick, []any{r}, "tick %s is closed, and its shard %d has no end", r.Run, shard)
			return
		case severity[end.outcome] > severity[worst]:
			worst = end.outcome
		}
	}
	if worst != r.Outcome {
		c.add(P2, r.Tick, []any{r}, "the worst that became of a shard of tick %s is %s, and it is recorded as %s", r.Run, worst, r.Outcome)
	}
}

// severity orders outcomes as SEVERITY of the scripts does.
var severity = map[jobs.Outcome]int{
	jobs.OutcomeSucceeded: 1, jobs.OutcomeCancelled: 2, jobs.OutcomeFailed: 3, jobs.OutcomeTimedOut: 4, jobs.OutcomeLost: 5, jobs.OutcomeAbandoned: 6,
}
