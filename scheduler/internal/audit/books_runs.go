package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// contradictions finds ticks that are recorded as not run and that ran, runs that began before
// their tick, and scheduled runs that no step of the cursor led to. The second check leaves out
// runs that were granted again: Redis' clock may have been set back since the first grant.
func (c *bookCheck) contradictions() {
	var far step // the farthest range of this era so far
	for _, k := range c.steps {
		switch {
		case k.row != nil && turns(k.row):
		case k.row != nil && k.row.Ranged:
			if far.row == nil || far.era != k.era || k.row.Until > far.row.Until {
				far = k
			}
		case far.row != nil && far.era == k.era && far.row.Tick <= k.prev && k.prev <= far.row.Until:
			c.add(P1, k.prev, []any{far, k}, "tick %s is recorded as %s, and %s", stamp(k.prev), far.row.Outcome, k)
		}
	}
	for _, r := range c.rows {
		if startedEarly(r) {
			c.add(P2, r.Tick, []any{r}, "run %s started before its tick", r.Run)
		}
	}
	for _, g := range c.grants {
		before := g.tick < c.entry.Base // of a chain that Redis has lost, see reassert.lua
		if g.request == "" && g.attempt == 1 && !g.step && !before && g.of == "" && len(c.def.After) == 0 && g.trigger != jobs.TriggerAfter.String() {
			c.add(P2, g.tick, []any{g}, "run %s of tick %s is no step of the chain", g.run, stamp(g.tick))
		}
	}
	for _, l := range c.open {
		if !l.Pending() && !derived(l.ID) && l.Granted < l.Tick-claim.AheadMax.Milliseconds() {
			c.add(P2, l.Tick, []any{l}, "run %s was granted long before its tick", l.ID)
		}
	}
}

// startedEarly reports whether a run started before its tick. A token is the instant of the grant
// in microseconds, or later: a start long before the token was recorded by a clock that was set
// back during the run, see runner's startOf, and is no evidence.
func startedEarly(r ledger.Row) bool {
	granted := !r.Ranged && !derived(r.Run) && r.Token != 0 && r.Started != 0
	return granted && r.Started < r.Tick-skewMost && r.Started >= r.Token/1000-skewMost
}

// line is a shard of a scheduled tick, or a request: its attempts come one after another.
type line struct {
	request string
	tick    int64
	shard   int
}

func (g grant) line() line {
	if g.request != "" {
		return line{request: g.request, shard: g.shard}
	}
	return line{tick: g.tick, shard: g.shard}
}

func (l line) String() string {
	if l.request != "" {
		return fmt.Sprintf("request %s shard %d", l.request, l.shard)
	}
	return fmt.Sprintf("tick %s shard %d", stamp(l.tick), l.shard)
}

// doubles finds runs, tokens and (tick, shard, attempt) that were granted more than once.
func (c *bookCheck) doubles() {
	type attempt struct {
		line
		n int
	}
	runs, tokens, attempts := make(map[string]grant), make(map[int64]grant), make(map[attempt]grant)
	for _, g := range c.grants {
		if first, again := runs[g.run]; again {
			c.add(P1, g.tick, []any{first, g}, "twice: run %s", g.run)
		}
		if first, again := tokens[g.token]; again && g.token != 0 {
			c.add(P3, g.tick, []any{first, g}, "twice: token %d", g.token)
		}
		runs[g.run], tokens[g.token] = g, g
		nth := attempt{g.line(), g.attempt}
		if first, again := attempts[nth]; again {
			c.add(P1, g.tick, []any{first, g}, "twice: %s attempt %d", nth.line, nth.n)
		}
		attempts[nth] = g
	}
}

// attempts checks, line by line, that each further attempt came after the end of the one before,
// with a larger token.
func (c *bookCheck) attempts() {
	lines := make(map[line][]grant)
	for _, g := range c.grants {
		lines[g.line()] = append(lines[g.line()], g)
	}
	for _, g := range c.grants {
		l := g.line()
		all := lines[l]
		delete(lines, l)
		slices.SortStableFunc(all, func(x, y grant) int { return cmp.Compare(x.attempt, y.attempt) })
		for i, g := range all {
			if why, before := c.untimely(g, all[:i]); why != "" {
				c.add(P1, g.tick, append(before, g), "%s: attempt %d %s", l, g.attempt, why)
			}
			if p := last(all[:i], func(p grant) bool { return p.token != 0 }); p != nil && g.token != 0 && g.token < p.token {
				c.add(P3, g.tick, []any{p, g}, "%s: attempt %d has a smaller token than attempt %d", l, g.attempt, p.attempt)
			}
		}
	}
}

// untimely returns the fault of an attempt and the earlier attempts that show the fault; "" for
// none. before has the earlier attempts of the same line.
func (c *bookCheck) untimely(g grant, before []grant) (why string, evidence []any) {
	p := last(before, func(p grant) bool { return p.attempt == g.attempt-1 })
	switch {
	case g.attempt < 1:
		return "is none", nil
	case g.attempt == 1, c.restored(g.tick):
		return "", nil
	case g.of != "" && c.opened[g.of] == g.attempt: // the attempt is the tick's, see shards
		return "", nil
	case g.step: // the cursor was set back
		if !c.cut && !slices.ContainsFunc(c.rows[:min(g.row, len(c.rows))], func(r ledger.Row) bool { return turns(&r) && r.Reason == ledger.ReasonRewound }) {
			return "without a first one: the cursor was never set back", nil
		}
		return "", nil
	case p != nil && !p.ended:
		return fmt.Sprintf("while attempt %d goes on", p.attempt), []any{p}
	case p != nil && p.row > g.row:
		return fmt.Sprintf("has a record before the end of attempt %d", p.attempt), []any{p}
	case p == nil && g.request == "" && (!c.cut || len(before) > 0) && !c.repeats(g):
		for _, b := range before {
			evidence = append(evidence, b)
		}
		return fmt.Sprintf("and no record of attempt %d", g.attempt-1), evidence
	}
	return "", nil
}

// repeats reports whether a run, or a tick to be opened, repeats a sharded tick as a whole: its
// attempt follows the highest attempt of any shard, not only of its own line.
func (c *bookCheck) repeats(g grant) bool {
	if g.of != "" || g.shard != 0 {
		return false
	}
	before := func(o grant) bool { return o.request == "" && o.tick == g.tick && o.attempt == g.attempt-1 }
	closed := func(r ledger.Row) bool { return r.IsTick && r.Request == "" && r.Tick == g.tick }
	return slices.ContainsFunc(c.grants, before) || c.cut && slices.ContainsFunc(c.rows, closed)
}

// last returns the last grant for which ok is true, nil when there is none.
func last(list []grant, ok func(grant) bool) *grant {
	for i := len(list) - 1; i >= 0; i-- {
		if ok(list[i]) {
			return &list[i]
		}
	}
	return nil
}

// tokens checks that every run has a token, and that the entry's token is the largest.
func (c *bookCheck) tokens() {
	var top grant
	for _, g := range c.grants {
		if g.token > top.token {
			top = g
		}
		if g.ended && g.token == 0 && g.outcome.Ran() && g.outcome != jobs.OutcomeCancelled {
			c.add(P3, g.tick, []any{g}, "run %s is recorded as %s and has no token", g.run, g.outcome)
		}
	}
	if top.token > c.entry.Token {
		c.add(P3, top.tick, []any{top, cursorOf(c.entry)}, "token %d of run %s is larger than the last one granted, %d", top.token, top.run, c.entry.Token)
	}
}

// rising checks the order of tokens from tick to tick. In a job with overlap allow, a run that was
// handed back may be granted after the runs of later ticks. An unknown overlap policy counts as
// allow.
func (c *bookCheck) rising() {
	loose := c.def.Name == "" || c.def.Overlap == jobs.OverlapAllow || slices.ContainsFunc(c.rows, func(r ledger.Row) bool { return replaces(&r) })
	var before step
	var top int64
	for _, k := range c.steps {
		token, run := k.token()
		if token == 0 || loose && derived(run) {
			continue
		}
		if token < top {
			c.add(P3, k.prev, []any{before, k}, "%s has token %d, and %s, before it, %d", k, token, before, top)
			continue
		}
		before, top = k, token
	}
}

func (k step) token() (int64, string) {
	switch {
	case k.run != nil:
		return k.run.Token, k.run.ID
	case k.row.Ranged:
		return 0, ""
	default:
		return k.row.Token, k.row.Run
	}
}

// derived reports whether the run's id, or its tick's id, was made from another run's id by
// ledger.NextAttemptID.
func derived(run string) bool {
	return len(run) >= 36 && run[14] == '5' && (len(run) == 36 || run[36] == '.')
}

// Runs of a backfill, like runs by hand, are no steps of the cursor. They run beside the job's
// other runs and beside each other.

// backfilled reports whether a run belongs to a backfill.
func (r *run) backfilled() bool {
	if g, known := r.record(); known {
		return g.trigger == jobs.TriggerBackfill.String()
	}
	return len(r.starts) > 0 && r.starts[0].backfilled()
}

func (w Write) backfilled() bool { return w.Trigger == jobs.TriggerBackfill.String() }

// asked reports whether a run was requested: it is no tick of the schedule.
func asked(request, trigger string) bool {
	return request != "" || trigger == manual || trigger == jobs.TriggerBackfill.String()
}

// fills reports whether a line's tick lies in the range of a requested backfill.
func (t *trial) fills(w Write) bool {
	return slices.ContainsFunc(t.job.Backfills, func(s Span) bool { return !w.Tick.Before(s.From) && w.Tick.Before(s.Until) })
}
