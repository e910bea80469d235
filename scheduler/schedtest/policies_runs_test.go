package schedtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

func (t *tale) blame(format string, args ...any) {
	t.broken = append(t.broken, fmt.Sprintf(format, args...))
}

// judge holds everything that was seen against the rules. Where Redis lost acknowledged writes, only its own
// books must be in order, and what the wire checks by itself.
func (t *tale) judge() {
	t.counters()
	t.tries()
	if t.lost {
		return
	}
	t.lineages()
	t.splits()
	t.recorded()
	t.outcomes()
	t.reruns()
	t.led()
	t.cancelled()
	t.promised()
	t.accounted()
	if t.stepped { // what is late, or in a window, depends on which of two times is meant
		return
	}
	t.reasons()
	t.paused()
	t.started()
	t.caughtUp()
	t.windows()
	t.replaced()
	t.answered()
}

// defs are a job's definitions, one for each version.
func (t *tale) defs(name string) []jobs.Job {
	var all []jobs.Job
	for v := range 1 + len(t.plan.Versions) {
		for _, j := range t.plan.jobs(v) {
			if j.Name == name {
				all = append(all, j)
			}
		}
	}
	return all
}

// most is the greatest of a number of a job's definitions.
func (t *tale) most(name string, of func(jobs.Job) int) int {
	most := 0
	for _, j := range t.defs(name) {
		most = max(most, of(j))
	}
	return most
}

// trimmed says whether rows may have left a job's history.
func (t *tale) trimmed(name string) bool {
	keep := t.plan.Config.HistoryKeep
	if keep == 0 {
		keep = 200
	}
	return len(t.rows[name]) >= keep-1
}

// grantOf is the grant of a run; nil when the wire saw none.
func (t *tale) grantOf(run string) *given {
	for i := range t.grants {
		if t.grants[i].run == run {
			return &t.grants[i]
		}
	}
	return nil
}

func (t *tale) endOf(run string) *ending {
	for i := range t.ends {
		if t.ends[i].run == run {
			return &t.ends[i]
		}
	}
	return nil
}

func (t *tale) rowOf(job, run string) *ledger.Row {
	for i, r := range t.rows[job] {
		if r.Run == run && !r.Ranged {
			return &t.rows[job][i]
		}
	}
	return nil
}

// lineage names what is to be done once: a job's tick, a shard of it, or what somebody asked for by hand.
func (g given) lineage() string {
	what := fmt.Sprintf("%s tick %d", g.job, g.tick)
	if g.request != "" {
		what = g.job + " for " + g.request
	}
	if g.shards > 1 {
		what += fmt.Sprint(" shard ", g.shard)
	}
	return what
}

// counters are the sums of the rows, as long as none has left.
func (t *tale) counters() {
	for _, name := range t.names {
		sums := make(map[jobs.Outcome]int64)
		for _, r := range t.rows[name] {
			if r.Whole {
				continue // its shards are counted
			}
			if r.Ranged {
				sums[r.Outcome] += r.Count
			} else {
				sums[r.Outcome]++
			}
		}
		for o := jobs.OutcomeSucceeded; o <= jobs.OutcomeSuperseded; o++ {
			if n := t.entries[name].Counts[o]; n != sums[o] && (!t.trimmed(name) || n < sums[o]) {
				t.blame("%s: %d are counted as %s, and the rows have %d", name, n, o, sums[o])
			}
		}
	}
}

// tries of one run come one after another, and there are no more of them than the job may have.
func (t *tale) tries() {
	going, starts := make(map[string]bool), make(map[string]int)
	for _, w := range t.writes {
		if w.Phase == verify.End {
			delete(going, w.Run)
			continue
		}
		if going[w.Run] {
			t.blame("run %s was begun while it was going: %s", w.Run, w)
		}
		going[w.Run] = true
		starts[w.Run]++
	}
	last := make(map[string]*called)
	for _, k := range t.calls {
		id := k.run.ID()
		before := last[id]
		if most := 1 + t.most(k.run.Job(), func(j jobs.Job) int { return j.Retry.Max }); k.run.Try() > most {
			t.blame("run %s: try %d of %d", id, k.run.Try(), most)
		}
		if before != nil && !t.lost && (k.run.Try() <= before.run.Try() || before.ended.IsZero() || before.ended.After(k.began)) {
			t.blame("run %s: try %d after try %d", id, k.run.Try(), before.run.Try())
		}
		if before != nil && before.ended.Before(k.began) && (before.err == nil || jobs.IsPermanent(before.err)) && !t.lost {
			t.blame("run %s: another try after one that ended with %v", id, before.err)
		}
		last[id] = k
		limit, all := t.timeout(k.run.Job())
		if worked := k.ended.Sub(k.began); all && !k.stubborn && !k.ended.IsZero() && worked > limit {
			t.blame("run %s: try %d worked for %s, and the job's timeout is %s", id, k.run.Try(), worked, limit)
		}
	}
}

// timeout is a job's greatest, and whether all of its definitions have one.
func (t *tale) timeout(name string) (limit time.Duration, all bool) {
	all = true
	for _, j := range t.defs(name) {
		limit, all = max(limit, j.Timeout), all && j.Timeout > 0
	}
	return limit, all
}

// lineages: each attempt of a tick is granted once, and only when those before it have ended; an attempt that
// was handed back has its number anew.
func (t *tale) lineages() {
	lines := make(map[string][]given)
	for _, g := range t.grants {
		for _, before := range lines[g.lineage()] {
			e := t.endOf(before.run)
			switch {
			case e == nil || e.at.After(g.at):
				t.blame("%s: attempt %d (%s) is granted while attempt %d (%s) goes on", g.lineage(), g.attempt, g.run, before.attempt, before.run)
			case e.how == "returned" && g.attempt == before.attempt:
			case g.attempt <= before.attempt:
				t.blame("%s: attempt %d (%s) is granted after attempt %d (%s)", g.lineage(), g.attempt, g.run, before.attempt, before.run)
			}
		}
		lines[g.lineage()] = append(lines[g.lineage()], g)
	}
	begun := make(map[string]string)
	for _, w := range t.writes {
		g := t.grantOf(w.Run)
		if w.Phase != verify.Start || g == nil {
			continue
		}
		attempt := fmt.Sprint(g.lineage(), " attempt ", g.attempt)
		if before := begun[attempt]; before != "" && before != w.Run {
			t.blame("%s was begun as %s and as %s", attempt, before, w.Run)
		}
		begun[attempt] = w.Run
	}
}

// recorded: what began was granted, and has a row or is in flight; what a row says was tried began at the sink.
func (t *tale) recorded() {
	starts := make(map[string]int)
	for _, w := range t.writes {
		if w.Phase != verify.Start {
			continue
		}
		starts[w.Run]++
		g := t.grantOf(w.Run)
		if g == nil || g.token != w.Token || g.attempt != w.Attempt || g.tick != w.Tick.UnixMilli() || g.job != w.Job || g.shard != w.Shard || g.shards != w.Shards {
			t.blame("begun otherwise than it was granted (%+v): %s", g, w)
		}
		if e := t.endOf(w.Run); e != nil && e.how == "returned" {
			t.blame("run %s was begun and handed back", w.Run)
		}
		r := t.rowOf(w.Job, w.Run)
		i := slices.IndexFunc(t.open, func(l ledger.Lease) bool { return l.Run == w.Run })
		switch {
		case r != nil && r.Tick == w.Tick.UnixMilli() && r.Token == w.Token && r.Attempt == w.Attempt:
		case r == nil && i >= 0 && t.open[i].Token == w.Token && t.open[i].Attempt == w.Attempt && t.open[i].Tick == w.Tick.UnixMilli():
		case r == nil && i < 0 && t.trimmed(w.Job):
		default:
			t.blame("begun, and the ledger has no such run: %s", w)
		}
	}
	for _, name := range t.names {
		for _, r := range t.rows[name] {
			if r.Ranged || r.Whole || r.Outcome == jobs.OutcomeAbandoned {
				continue
			}
			if n := starts[r.Run] + t.spared[r.Run]; n != r.Tries {
				t.blame("%s: run %s of tick %d is recorded as %s after %d tries, and it was begun %d times", name, r.Run, r.Tick, r.Outcome, r.Tries, n)
			}
			if r.Token == 0 && r.Outcome != jobs.OutcomeCancelled {
				t.blame("%s: run %s is recorded as %s and was never granted", name, r.Run, r.Outcome)
			}
		}
	}
}

// outcomes are what the functions returned last.
func (t *tale) outcomes() {
	last := make(map[string]*called)
	for _, k := range t.calls {
		last[k.run.ID()] = k
	}
	for id, k := range last {
		r := t.rowOf(k.run.Job(), id)
		if r == nil || r.Outcome == jobs.OutcomeAbandoned || t.spared[id] > 0 {
			continue
		}
		if k.ended.IsZero() {
			t.blame("run %s is recorded as %s, and its function has not returned", id, r.Outcome)
		} else if (k.err == nil) != (r.Outcome == jobs.OutcomeSucceeded) {
			t.blame("run %s is recorded as %s, and its function returned %v", id, r.Outcome, k.err)
		}
	}
}
