package audit

import (
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// skewMost is the largest max_skew that a node can be set to, in ms. A node's estimate of Redis'
// time, which some records carry, may differ this much from the time that Redis wrote in the same
// record.
const skewMost = 60_000

// bookCheck is the check of one job's books.
type bookCheck struct {
	books    query.JobSnapshot
	entry    ledger.Entry
	def      jobs.Definition // without a name when it could not be read
	rows     []ledger.Row
	open     []ledger.Run // of this job
	steps    []step
	grants   []grant
	opened   map[string]int // by id of a sharded tick: the attempt as which the tick was opened
	schedule *jobs.Schedule // of def
	cut      bool           // rows have left the history
	ticks    int64          // recomputed
	found    []Finding
}

// Books checks the records of one job against the promises and returns the findings: the chain must
// close, and the schedule in force must demand each step (P2); no tick may be
// granted twice, or be recorded as run and as not run (P1); tokens must grow (P3). Without a
// definition, only checks that need no schedule are made. ticks is the number of recomputed ticks.
func Books(b query.JobSnapshot) (found []Finding, ticks int64) {
	c := newBookCheck(b)
	c.all()
	return c.found, c.ticks
}

func newBookCheck(b query.JobSnapshot) *bookCheck {
	c := &bookCheck{books: b, entry: b.Entry, def: b.Definition, rows: b.Rows, open: b.Open}
	c.steps = stepsOf(b.Entry, b.Rows, b.Open)
	c.grants = grantsOf(b.Rows, b.Open)
	c.opened = openedOf(b.Rows, b.Open)
	c.cut = HistoryTrimmed(b.Entry, b.Rows)
	return c
}

func (c *bookCheck) all() {
	if len(c.def.After) == 0 { // a follower's steps are its upstream's
		c.closes()
		c.recompute()
		c.rising()
	}
	c.contradictions()
	c.attempts()
	c.shards()
	if hinging := len(c.found); !c.books.Complete {
		c.unsure(c.found[:hinging])
	}
	c.doubles()
	c.tokens()
	c.counts()
	c.held()
	if c.def.Name != "" && c.def.Digest() != c.entry.Digest {
		c.add(Unsound, 0, []any{cursorOf(c.entry)}, "the definition stored is %s, and the entry was made for %s", c.def.Digest(), c.entry.Digest)
	}
}

// unsure downgrades findings that hinge on every record being there: they break no promise for
// certain.
func (c *bookCheck) unsure(found []Finding) {
	for i := range found {
		f := &found[i]
		f.Promise, f.What = Unsound, f.Promise+" cannot be verified, because some records cannot be read: "+f.What
	}
}

// held checks that the run which holds the job exists.
func (c *bookCheck) held() {
	run := c.entry.HolderRun
	if run != "" && c.books.Complete && !slices.ContainsFunc(c.open, func(l ledger.Run) bool { return l.ID == run }) {
		c.add(Unsound, 0, []any{cursorOf(c.entry)}, "the job is held for run %s, and there is no such run", run)
	}
}

func (c *bookCheck) add(promise string, at int64, evidence []any, format string, args ...any) {
	f := Finding{Kind: KindBooks, Job: c.entry.Job, Promise: promise, What: fmt.Sprintf(format, args...), latest: at}
	if at != 0 {
		f.Tick = instant(at)
	}
	for _, e := range evidence {
		f.Evidence = append(f.Evidence, show(e))
	}
	c.found = append(c.found, f)
}

// restored reports whether a failover lost attempts or shards of this tick or a later one, which
// their nodes reported again. The end of an attempt may then come after the next attempt in the
// history, or be missing.
func (c *bookCheck) restored(tick int64) bool {
	return c.entry.Restored != 0 && tick <= c.entry.Restored
}

// numbers counts the ticks and runs of rows by outcome.
func numbers(rows []ledger.Row) map[jobs.Outcome]int64 {
	sum := make(map[jobs.Outcome]int64)
	for _, r := range rows {
		switch {
		case r.Ranged:
			sum[r.Outcome] += r.Count
		case !r.IsTick: // its shards were counted
			sum[r.Outcome]++
		}
	}
	return sum
}

// HistoryTrimmed reports whether old rows have left the history: the job's counters exceed its
// rows.
func HistoryTrimmed(e ledger.Entry, rows []ledger.Row) bool {
	sum := numbers(rows)
	for o, n := range e.Counts {
		if n > sum[o] {
			return true
		}
	}
	return false
}

// counts checks that the job's counters include every row.
func (c *bookCheck) counts() {
	sum := numbers(c.rows)
	for o := jobs.OutcomeRunning; o <= jobs.OutcomeSuperseded; o++ {
		if n := c.entry.Counts[o]; sum[o] > n {
			c.add(Unsound, 0, []any{cursorOf(c.entry)}, "the history has %d %s, and only %d were counted", sum[o], o, n)
		}
	}
}
