package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// failoverConfig keeps what nodes remember: with traceConfig the rows of some runs would leave the history before they do.
var failoverConfig = Config{Partitions: tracePartitions, Keep: 64, KeepFor: 1000 * time.Hour}

// moment is all there was at one time.
type moment struct {
	servers  []backup
	model    *model
	promises *promises
	planted  []plant
	step     int
}

// note remembers a moment, to which the server may be set back.
func (tr *trace) note(tb testing.TB) {
	tb.Helper()
	m := &moment{promises: tr.promises.clone(), planted: slices.Clone(tr.world.planted), step: tr.step}
	if tr.model != nil {
		m.model = tr.model.clone()
	}
	for _, r := range tr.rigs {
		m.servers = append(m.servers, r.backup(tb))
	}
	tr.moment = m
}

// failover sets the servers back to the moment noted, as another server, and has the nodes say what they were granted,
// in any order, with other things going on meanwhile.
func (tr *trace) failover(tb testing.TB) {
	tb.Helper()
	m, w := tr.moment, tr.world
	tr.moment = nil
	for i, r := range tr.rigs {
		r.restore(tb, m.servers[i])
	}
	top := tr.promises.top
	tr.promises.restore(m.promises)
	tr.promises.top = top // tokens grow whatever is lost
	tr.promises.failed = true
	clear(tr.promises.live) // what holds a job now is for the model to say: its end may be lost, and it may be restored
	for _, w := range tr.promises.runs {
		w.restored = true
	}
	if tr.model != nil {
		tr.model = m.model
	}
	w.planted = m.planted
	// The token rule holds for servers that are a second apart and whose clocks agree.
	w.us = tr.high + 1_000_001 + w.rng.Int64N(3_000_000)
	w.floor = w.us
	w.runID = fmt.Sprintf("%012x%08x", w.rng.Int64N(1<<48), w.rng.Int32())
	tr.counts["failover"]++
	tr.done = remember(tr.done, fmt.Sprintf("%d: back to the state after %d", tr.step, m.step), 6)
	told := slices.Clone(w.held)
	for _, h := range told {
		h.tries, h.gap = 0, nil
	}
	for len(told) > 0 {
		w.rng.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
		var again []*holding
		for _, part := range w.parts(told) {
			again = append(again, tr.reassert(tb, part)...)
		}
		if told = again; w.chance(30) {
			tr.one(tb)
		}
	}
}

// parts are some of the runs told of, as calls take them.
func (w *world) parts(told []*holding) (parts [][]*holding) {
	var all [tracePartitions][]*holding
	for _, h := range told {
		p := Partition(h.lease.Job, tracePartitions)
		all[p] = append(all[p], h)
	}
	for _, list := range all {
		for len(list) > 0 {
			n := min(len(list), 1+w.rng.IntN(6))
			parts, list = append(parts, list[:n]), list[n:]
		}
	}
	return parts
}

// reassert tells of runs, and of the ends of those that have ended. It returns those that are to be told of again.
func (tr *trace) reassert(tb testing.TB, list []*holding) (again []*holding) {
	tb.Helper()
	w := tr.world
	list = keepIf(list, func(h *holding) bool { return slices.Contains(w.held, h) && !tr.trimmed(tb, h) })
	o := op{kind: "reassert", now: w.believed(), server: w.runID}
	if w.chance(3) {
		o.server = "0123"
	}
	for _, h := range list {
		tr.uncover(tb, h.lease)
		o.asserts = append(o.asserts, w.assertion(h))
	}
	if len(list) == 0 {
		return nil
	}
	r := tr.do(tb, o)
	if r.err != "" {
		return list
	}
	ends := op{kind: "settle", server: w.runID}
	for i, a := range r.asserted {
		h := list[i]
		if w.answer(h, a) {
			again = append(again, h)
		}
		if (a.Word == Known || a.Word == Restored) && h.end != nil {
			end := *h.end
			if w.chance(70) {
				end.Token = h.lease.Token
			}
			ends.reports = append(ends.reports, end)
		}
	}
	if len(ends.reports) > 0 {
		tr.do(tb, ends)
	}
	return again
}

// uncover puts back what was planted over the ids that a run had before: what nobody can read, a run cannot take the place of.
func (tr *trace) uncover(tb testing.TB, l Lease) {
	tb.Helper()
	tr.world.planted = slices.DeleteFunc(tr.world.planted, func(p plant) bool {
		other := p.what != "row" && p.name != l.Run && p.name != l.Of && strings.Contains(p.record, fmt.Sprintf("|%s|%d|", l.Job, l.Tick))
		if other {
			tr.do(tb, op{kind: "plant", plant: p})
		}
		return other
	})
}

// trimmed says that a run has ended so long ago that its row has left the history: no node remembers such a one.
func (tr *trace) trimmed(tb testing.TB, h *holding) bool {
	tb.Helper()
	known := tr.promises.runs[h.lease.Run]
	if h.end == nil || known == nil || known.token != h.lease.Token || known.state == "live" || known.state == "returned" {
		return false
	}
	return !slices.ContainsFunc(tr.world.rows(tb, h.lease.Job), func(r Row) bool { return r.Run == h.lease.Run })
}

// clone is what was promised so far.
func (p *promises) clone() *promises {
	c := newPromises()
	c.restore(p)
	return c
}

// restore takes over what another one knows, but not what it has found.
func (p *promises) restore(from *promises) {
	p.granted, p.live, p.top, p.stored = maps.Clone(from.granted), maps.Clone(from.live), maps.Clone(from.top), maps.Clone(from.stored)
	p.foreign, p.paused, p.wished, p.opened = maps.Clone(from.foreign), maps.Clone(from.paused), maps.Clone(from.wished), maps.Clone(from.opened)
	p.gates = from.gates
	p.runs = map[string]*watched{}
	for id, w := range from.runs {
		other := *w
		p.runs[id] = &other
	}
}

// asserted notes what is there again. What it takes the place of was handed back, or is over.
func (p *promises) asserted(a Assertion, word Word, now int64) {
	l := a.Lease
	w := p.runs[l.Run]
	switch {
	case word == Known && (w == nil || w.state != "live" || w.token != l.Token):
		p.bad("P2: run %s is known with token %d; granted and answered was %+v", l.Run, l.Token, w)
	case word == Known:
		w.until, w.beat = now+l.TTL, w.beat+1
	case word == Restored && w != nil && w.state != "returned":
		p.bad("P2: run %s is restored, and was there: %+v", l.Run, w)
	case word == Restored:
		p.restored(a, now)
	}
}

func (p *promises) restored(a Assertion, now int64) {
	l := a.Lease
	key := keyOf(l.Job, l)
	if other := p.runs[p.granted[key]]; other != nil && other.job == l.Job {
		if other.state != "live" || other.token > l.Token {
			p.bad("P1: %s is restored to run %s, and was granted to run %s since", key, l.Run, p.granted[key])
		}
		other.state = "returned"
	}
	if l.Of != "" {
		p.opened[l.Of], p.anew[l.Of] = true, true
	}
	p.granted[key] = l.Run
	p.runs[l.Run] = &watched{job: l.Job, of: l.Of, key: key, node: l.Node, digest: a.Digest, token: l.Token, until: now + l.TTL, state: "live", restored: true}
}

// fail makes servers take each other's place.
func (tr *trace) fail(sharded bool) {
	tr.world.sharded, tr.world.failing = sharded, true
	for _, r := range tr.rigs {
		r.led.cfg.Keep, r.led.cfg.KeepFor = failoverConfig.Keep, failoverConfig.KeepFor
	}
	tr.model = newModel(failoverConfig)
}

// TestFailoverTrace: the same as TestTrace, where at times another server takes the place of this one, which has not got
// its last writes, and the nodes say what they were granted.
func TestFailoverTrace(t *testing.T) {
	useScripts(t, steered...)
	counts := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			tr := newTrace(seed, realRig(t, traceConfig), embeddedRig(t, traceConfig))
			tr.fail(seed%2 == 0)
			tr.run(t, *traceOps/2, func() bool { return len(tr.all()) > 0 })
			tr.report(t, seed)
			t.Logf("seed %d: %d operations, answers %v", seed, tr.step-1, tr.counts)
			for answer, n := range tr.counts {
				counts[answer] += n
			}
		})
	}
	for _, answer := range []string{"failover", "reassert known", "reassert restored", "reassert ended", "reassert lost", "reassert behind",
		"reassert unknown", "reassert foreign", "reassert clock", "reassert server"} {
		if counts[answer] == 0 && *traceOps**seeds >= 4000 && *seeds > 1 {
			t.Errorf("no %q in %d traces of %d operations: they have become hollow", answer, *seeds, *traceOps)
		}
	}
}

// keyOf names what may be granted once.
func keyOf(job string, l Lease) string {
	if l.Request != "" {
		return fmt.Sprintf("%s request %s shard %d attempt %d", job, l.Request, l.Shard, l.Attempt)
	}
	return fmt.Sprintf("%s tick %d shard %d attempt %d", job, l.Tick, l.Shard, l.Attempt)
}
