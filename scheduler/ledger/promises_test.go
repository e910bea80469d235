package ledger

import (
	"cmp"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

func millisOf(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// promises watches the replies alone, and the true clock, and says which promise of the design
// they break. It knows nothing of how the ledger works.
type promises struct {
	broken  []string          // each begins with the promise's number
	granted map[string]string // job, tick, shard, attempt (or request) -> run
	runs    map[string]*watched
	live    map[string]string // job -> run that was granted, holds it and did not end
	top     map[string]locking.Token
	stored  map[string]string // job -> digest of the stored definition
	foreign map[string]bool
	gates   [tracePartitions]string
	paused  map[string]int64  // job -> until when, ms
	wished  map[string]string // run -> that somebody wanted it ended: told or cancelled
	opened  map[string]bool   // sharded ticks that were opened
	failed  bool              // a failover has lost something
	anew    map[string]bool   // and those that a failover may have lost: another run may have held the job since
}

// watched is a grant and what became of it.
type watched struct {
	job, key, node string
	of             string // the open tick that it is a shard of
	digest         string // of the claim
	token          locking.Token
	until, beat    int64
	state          string // live, returned, reaped, or the outcome that was settled
	restored       bool   // after a failover: it may not be what holds its job
}

func newPromises() *promises {
	return &promises{granted: map[string]string{}, runs: map[string]*watched{}, live: map[string]string{},
		top: map[string]locking.Token{}, stored: map[string]string{}, foreign: map[string]bool{}, paused: map[string]int64{}, wished: map[string]string{},
		opened: map[string]bool{}, anew: map[string]bool{}}
}

func (p *promises) bad(format string, args ...any) {
	p.broken = append(p.broken, fmt.Sprintf(format, args...))
}

// see takes one operation and its reply at Redis' time now, ms.
func (p *promises) see(o op, r reply, now int64) {
	switch o.kind {
	case "plant":
		p.foreign[o.plant.name] = !o.plant.back
	case "gate":
		p.gates[o.part] = o.gate
	case "raise":
		raise(&p.gates, o.raise)
	}
	for job, until := range p.paused {
		if now >= until {
			delete(p.paused, job)
		}
	}
	if r.err != "" {
		return
	}
	if off := max(now-o.now, o.now-now); off > 1000 && o.timed() {
		p.bad("clock: %s acted although the caller is off by %d ms", o.kind, off)
	}
	p.behindGate(o)
	switch o.kind {
	case "reassert":
		for i, a := range r.asserted {
			p.asserted(o.asserts[i], a.Word, now)
		}
	case "claim":
		for i, a := range r.answers {
			p.claimed(o.by, o.claims[i], a, now)
		}
	case "settle":
		for i, word := range r.words {
			p.settled(o.reports[i], word)
		}
	case "renew":
		for i, a := range r.renewed {
			p.renewed(o.renewals[i], a, now)
		}
	case "reap":
		for i, word := range r.words {
			p.reaped(o.seen[i], word, now)
		}
	case "unclaim":
		for i, word := range r.words {
			p.returned(o.returns[i], word)
		}
	case "define", "switch":
		for i, d := range r.defined {
			p.defined(o, o.defs[i], d)
		}
	default:
		p.operated(o, r)
	}
}

// operated notes what an operator did.
func (p *promises) operated(o op, r reply) {
	switch o.kind {
	case "cancel":
		p.wished[o.run] = string(r.word)
		if w := p.runs[o.run]; r.word == Told && !p.opened[o.run] && (w == nil || w.state != "live") {
			p.bad("P2: run %s is not live, and its node is told to end it", o.run)
		}
	case "pause":
		if p.paused[o.job] = o.pause.Until; o.pause.Until == 0 {
			p.paused[o.job] = never
		}
	case "resume":
		delete(p.paused, o.job)
	case "remove":
		p.removed(o.job)
	}
}

// removed forgets a job: one of that name that comes later is another.
func (p *promises) removed(job string) {
	for id, w := range p.runs {
		if w.job != job {
			continue
		}
		if w.state == "live" {
			p.bad("P2: %s was removed under run %s", job, id)
		}
		delete(p.granted, w.key)
		delete(p.runs, id)
	}
	delete(p.top, job)
	delete(p.stored, job)
	delete(p.paused, job)
}

func (p *promises) claimed(by Claimer, c Claim, a Answer, now int64) {
	was := p.runs[c.Run]
	if a.Verdict == Opened {
		p.opened[a.Detail] = true
	}
	if a.Verdict != Granted {
		if was != nil && was.state == "live" && was.job == c.Job && was.digest == c.Digest && was.node == by.ID && !was.restored && !p.foreign[c.Run] && !p.foreign[c.Job] {
			p.bad("P6: run %s is live, and its node, asking again, is answered %s", c.Run, a.Verdict)
		}
		return
	}
	if was != nil {
		switch {
		case was.state != "live":
			p.bad("P1: run %s was granted again, after %s", c.Run, was.state)
		case was.node != by.ID:
			p.bad("P1: run %s was granted to %s and to %s", c.Run, was.node, by.ID)
		case was.token != a.Token:
			p.bad("P3: run %s has the tokens %d and %d", c.Run, was.token, a.Token)
		}
		return
	}
	p.granting(by, c, a, now)
}

func (p *promises) granting(by Claimer, c Claim, a Answer, now int64) {
	key := keyOf(c.Job, c.Lease(a, by, now))
	if until, paused := p.paused[c.Job]; paused && now < until && a.Run.Request == "" && a.Run.Trigger != "rerun" && a.Run.Of == "" {
		p.bad("pause: %s was granted while the job is paused", key)
	}
	if other := p.granted[key]; other != "" {
		p.bad("P1: %s was granted to run %s and to run %s", key, other, c.Run)
	}
	holder := cmp.Or(a.Run.Of, c.Run) // the shards of a tick run beside each other
	if other := p.live[c.Job]; other != "" && other != holder && !p.anew[holder] && c.Overlap != jobs.OverlapAllow {
		p.bad("P1: %s runs twice at once, as %s and as %s", c.Job, other, c.Run)
	}
	if a.Token <= p.top[c.Job] {
		p.bad("P3: %s was granted token %d after %d", c.Job, a.Token, p.top[c.Job])
	}
	if !c.Pending && c.Tick > now {
		p.bad("early: %s was granted %d ms early", key, c.Tick-now)
	}
	if g, open := gateAt(p.gates[Partition(c.Job, tracePartitions)]); !open {
		p.bad("P7: %s was granted behind a gate that is %s", key, g.state)
	}
	if p.stored[c.Job] != c.Digest {
		p.bad("P7: %s was granted to %s, stored is %s", key, c.Digest, p.stored[c.Job])
	}
	if p.granted[key], p.top[c.Job] = c.Run, a.Token; c.Overlap != jobs.OverlapAllow {
		p.live[c.Job] = holder
	}
	p.runs[c.Run] = &watched{job: c.Job, of: a.Run.Of, key: key, node: by.ID, digest: c.Digest, token: a.Token, until: now + c.TTL.Milliseconds(), state: "live"}
}

// ended notes the end of a live run, once.
func (p *promises) ended(id string, w *watched, how string) {
	if w.state != "live" {
		p.bad("P2: run %s ended as %s and as %s", id, w.state, how)
		return
	}
	w.state = how
	for _, o := range p.runs {
		if w.of != "" && o.of == w.of && o.state == "live" {
			return // other shards go on
		}
	}
	if p.live[w.job] == cmp.Or(w.of, id) {
		delete(p.live, w.job)
	}
}

func (p *promises) settled(r Report, word Word) {
	w := p.runs[r.Run]
	switch {
	case word == Settled && w == nil && p.failed && r.Outcome == jobs.OutcomeCancelled: // before it was granted again
	case word == Settled && w == nil:
		p.bad("P2: run %s was settled as %s and never granted", r.Run, r.Outcome)
	case word == Settled && w.state == "returned" && r.Outcome == jobs.OutcomeCancelled: // it was to be cancelled, and is
	case word == Settled && w.state != r.Outcome.String():
		p.ended(r.Run, w, r.Outcome.String())
	case (word == Lost || word == NoSuchRun) && w != nil && w.state == "live" && (r.Token == 0 || r.Token == w.token):
		p.bad("P2: the report of live run %s was answered %s", r.Run, word)
	}
}

func (p *promises) renewed(r locking.Renewal, a locking.RenewAnswer, now int64) {
	w := p.runs[r.Owner]
	switch {
	case a == locking.Renewed && (w == nil || w.state != "live"):
		p.bad("P4: run %s was renewed, and is not live", r.Owner)
	case a == locking.Renewed:
		w.until, w.beat = now+r.TTL.Milliseconds(), w.beat+1
	case w != nil && w.state == "live" && !p.foreign[r.Owner] && r.Token == w.token:
		p.bad("P4: live run %s was told that it is gone", r.Owner)
	}
}

func (p *promises) reaped(seen Lease, word Word, now int64) {
	w := p.runs[seen.Run]
	if word != Reaped {
		return
	}
	switch {
	case w == nil:
		p.bad("P2: run %s was reaped and never granted", seen.Run)
		return
	case w.until >= now:
		p.bad("P4: run %s was reaped %d ms before its lease lapsed", seen.Run, w.until-now)
	case w.beat != seen.Beat:
		p.bad("P4: run %s was reaped at beat %d, seen was %d", seen.Run, w.beat, seen.Beat)
	}
	p.ended(seen.Run, w, "abandoned")
}

func (p *promises) returned(r Return, word Word) {
	w := p.runs[r.Run]
	if word != Returned || w != nil && w.state != "live" {
		return // before, or it ended long ago: nothing happens
	}
	if w == nil {
		p.bad("P2: run %s was handed back and never granted", r.Run)
		return
	}
	p.ended(r.Run, w, "returned")
	delete(p.granted, w.key) // it never ran: the same attempt is granted again
}
