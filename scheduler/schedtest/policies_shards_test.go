package schedtest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// parts gives about one job in four shards; a deploy gives other ones now and then, or takes them away. Those with a
// schedule tick every few seconds.
func (t *tale) parts(version int, j jobs.Job) jobs.Job {
	d := &dice{rand.New(rand.NewPCG(fold(t.seed, j.Name), 0x5aad))}
	sharded, n, other, slow := d.IntN(4) == 0, 2+d.IntN(4), 1+d.IntN(5), d.IntN(3) > 0
	if !sharded {
		return j
	}
	if slow && j.After == "" && version == 0 {
		j.Schedule = pick(d, []string{"@every 3s", "1-59/3 * * * * *"})
	}
	counts := []int{n, n}
	if d.IntN(2) == 0 {
		counts[d.IntN(2)] = other
	}
	j.Shards = counts[version]
	return j
}

// opened notes who opened a tick first, and when.
func (t *tale) opened(c *cluster, m *message, a []string, id string) {
	if t.openOf(id) != nil {
		return
	}
	g := given{at: time.Now(), ms: c.redisTime().UnixMilli(), job: a[claimJob], run: id, mode: a[claimMode], process: m.conn.process,
		pending: a[0] != "t", tick: whole64(a[claimTick]), trigger: a[11], passes: a[8]}
	if g.pending {
		g.trigger, g.passes = "", ""
	}
	t.opens = append(t.opens, g)
}

// openOf is how a sharded tick was opened; nil when the wire saw nothing of it.
func (t *tale) openOf(id string) *given {
	for i := range t.opens {
		if t.opens[i].run == id {
			return &t.opens[i]
		}
	}
	return nil
}

// closed learns from the books what the wire does not show of sharded ticks: what pending runs were opened for,
// and when the last shard ended.
func (t *tale) closed() {
	for i := range t.opens {
		o := &t.opens[i]
		for _, g := range t.grants {
			if g.of == o.run {
				o.tick, o.trigger, o.request = g.tick, g.trigger, g.request
			}
		}
		for _, l := range t.open {
			if l.Whole && l.Run == o.run {
				o.tick, o.trigger, o.request, o.attempt = l.Tick, l.Trigger, l.Request, l.Attempt
			}
		}
		r := t.rowOf(o.job, o.run)
		if r == nil {
			continue
		}
		o.tick, o.trigger, o.request, o.attempt = r.Tick, r.Trigger, r.Request, r.Attempt
		how := "settled"
		if r.Outcome != jobs.OutcomeSucceeded && r.Outcome != jobs.OutcomeFailed {
			how = "closed badly"
		}
		at := t.now.Add(time.Duration(r.At-t.read-1) * time.Millisecond) // at the latest: both are cut to milliseconds
		for _, e := range t.ends {
			if g := t.grantOf(e.run); g != nil && g.of == o.run && e.ms == r.At {
				at = e.at // seen on the wire
			}
		}
		t.ends = append(t.ends, ending{at: at, ms: r.At, free: r.At, job: o.job, run: o.run, how: how, outcome: r.Outcome.String()})
	}
}

// steps are the grants of what is no shard of an open tick, and the openings of ticks, which are to the
// policies what grants are.
func (t *tale) steps() []given {
	all := slices.DeleteFunc(slices.Clone(t.grants), func(g given) bool { return g.of != "" })
	all = append(all, t.opens...)
	slices.SortStableFunc(all, func(a, b given) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return all
}

// opensBoth says whether ticks of a sharded job were opened under different overlap policies: then a tick begins to
// hold the job when a shard of it is granted, which held does not follow.
func (t *tale) opensBoth(name string) bool {
	defs := t.defs(name)
	return t.most(name, func(j jobs.Job) int { return j.Shards }) > 1 &&
		slices.ContainsFunc(defs, func(j jobs.Job) bool { return j.Overlap != defs[0].Overlap })
}

// wanted notes that an operator asked for a run, which may be handed back, or opened as a tick.
func (t *tale) wanted(run string, whole bool) {
	for range 12 {
		t.again[run] = true
		for shard := 0; whole && shard < 5; shard++ {
			t.wanted(ledger.ShardRun(run, shard), false)
		}
		run = ledger.Successor(run)
	}
}

// worstOf is what a sharded tick comes to when the last attempts of its shards came to that.
func worstOf(ends map[int]ledger.Row) (worst jobs.Outcome, bad int) {
	order := []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost, jobs.OutcomeAbandoned}
	at := 0
	for _, r := range ends {
		at = max(at, slices.Index(order, r.Outcome))
		if r.Outcome != jobs.OutcomeSucceeded {
			bad++
		}
	}
	return order[at], bad
}

// splits: a tick has one number of shards, whatever a deploy says meanwhile; it is closed once, when each has
// ended for good, and says what the worst of them came to. Nothing is granted of it after that.
func (t *tale) splits() {
	shards := make(map[string]int)
	for _, g := range t.grants {
		if g.of == "" {
			continue
		}
		if n := shards[g.of]; n != 0 && n != g.shards {
			t.blame("%s: MIXED: a shard of %d and one of %d in tick %s", g.lineage(), n, g.shards, g.of)
		}
		shards[g.of] = g.shards
		if e := t.endOf(g.of); e != nil && e.ms < g.ms && !t.stepped {
			t.blame("%s: granted to %s after tick %s was closed", g.lineage(), g.run, g.of)
		}
	}
	for _, name := range t.names {
		if t.trimmed(name) {
			continue
		}
		ends := make(map[string]map[int]ledger.Row)
		for _, r := range t.rows[name] {
			if r.Of != "" {
				if ends[r.Of] == nil {
					ends[r.Of] = make(map[int]ledger.Row)
				}
				ends[r.Of][r.Shard] = r
			}
			if !r.Whole {
				continue
			}
			worst, bad := worstOf(ends[r.Run])
			if len(ends[r.Run]) != r.Shards {
				t.blame("%s: tick %s of %d shards is closed when %d have ended", name, r.Run, r.Shards, len(ends[r.Run]))
			} else if worst != r.Outcome || (bad > 0) != (r.Reason != "") {
				t.blame("%s: tick %s is recorded as %s (%s), and the worst of its shards is %s", name, r.Run, r.Outcome, r.Reason, worst)
			}
			delete(ends, r.Run)
		}
		for of := range ends {
			if !slices.ContainsFunc(t.open, func(l ledger.Lease) bool { return l.Whole && l.Run == of }) {
				t.blame("%s: shards of tick %s ended, and it is neither open nor closed before", name, of)
			}
		}
	}
}

// cancelledWhole: of a tick that was cancelled no shard is granted any more, and those that run end.
func (t *tale) cancelledWhole(k killed) {
	for _, g := range t.grants {
		switch {
		case g.of != k.run:
		case g.at.After(k.at):
			t.blame("run %s is granted after its tick %s was cancelled", g.run, k.run)
		default:
			t.stops(g.run, g, k.at, "its tick was cancelled")
		}
	}
}

// countShards counts what a play showed of sharded ticks.
func (t *tale) countShards(seen map[string]int) {
	seen["tick of shards"] += len(t.opens)
	for _, g := range t.grants {
		if g.shards > 1 && g.attempt > 1 {
			seen["shard run again"]++
		}
	}
	for _, o := range t.opens {
		if t.again[o.run] {
			seen["tick of shards run again"]++
		}
	}
	for _, k := range t.kills {
		if t.openOf(k.run) != nil {
			seen["tick of shards cancelled by hand"]++
		}
	}
	for _, name := range t.names {
		good := make(map[string]bool)
		for _, r := range t.rows[name] {
			good[r.Of] = good[r.Of] || r.Outcome == jobs.OutcomeSucceeded
			if r.Whole && r.Outcome != jobs.OutcomeSucceeded && good[r.Run] {
				seen["partial failure"]++
			}
		}
	}
}
