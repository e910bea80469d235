package ledger

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

func (w *world) claim(o op) op {
	o.kind, o.by = "claim", pick(w, claimers)
	here := w.part()
	for _, name := range some(w, keepIf(jobNames, here), 6) {
		old := keepIf(w.claims, func(a asked) bool { return a.claim.Job == name })
		var c Claim
		switch s, known := w.view.jobs[name]; {
		case len(old) > 0 && w.chance(14):
			again := pick(w, old)
			if w.burnt[again.claim.Run] && again.claim.From == s.Cursor {
				continue // its node has had the answer; a copy older than the tolerated second is refused
			}
			if w.chance(80) {
				o.by = again.by
			}
			c = again.claim
		case !known:
			c = Claim{Job: name, Digest: pick(w, digests), Run: w.id("r"), TTL: 5 * time.Second, From: w.ms(), Tick: w.ms(), Next: w.ms() + 1}
		default:
			c = w.claimOf(s)
		}
		for _, c := range append([]Claim{c}, w.others(c)...) {
			o.claims = append(o.claims, c)
			w.claims = remember(w.claims, asked{o.by, c}, 80)
		}
	}
	return o
}

// claimOf is a claim for a job as it stands, mostly the right one.
func (w *world) claimOf(s Stored) Claim {
	r := rhythms[s.Digest]
	c := Claim{Job: s.Job, Digest: s.Digest, TTL: time.Duration(3000+w.rng.IntN(9000)) * time.Millisecond, Overlap: r.overlap, Attempts: r.attempts,
		Shards: r.shards, Params: r.params}
	if w.failing {
		c.Attempts = min(c.Attempts, 2) // two crashes of one run take longer than a failover loses
	}
	if w.chance(6) {
		c.Digest = pick(w, []string{pick(w, digests), otherGeneration(s.Digest)})
		other := rhythms[c.Digest]
		c.Overlap, c.Shards, c.Params = other.overlap, other.shards, other.params
	}
	waiting := keepIf(w.view.pending, func(l Lease) bool { return l.Job == s.Job && (!l.Whole || w.chance(5)) })
	if parts := keepIf(waiting, func(l Lease) bool { return l.Of != "" }); len(waiting) > 0 && (r.every == 0 || w.chance(40) || len(parts) > 0 && w.chance(50)) {
		l := pick(w, waiting)
		c.Pending, c.Run, c.Shard = true, l.Run, l.Of != ""
		if c.Shard && w.chance(90) {
			return c
		}
		switch n := w.rng.IntN(100); {
		case n < 4:
			c.Run = w.id("nobody")
		case n < 7 && len(w.view.pending) > 0:
			l = pick(w, w.view.pending) // of any job
			c.Run, c.Shard = l.Run, l.Of != ""
		case n < 15 || r.every == 0 && n < 25:
			c.Drop = ReasonStartWithin
		}
		return c
	}
	if w.chance(6) { // a node that sees another cursor
		s.Cursor = pick(w, []int64{0, s.Cursor - r.every, s.Cursor + r.every, s.Last})
	}
	c.Run, c.From, c.Trigger = w.id("r"), s.Cursor, jobs.TriggerSchedule
	if w.plan(&c, r, s.Entry); w.chance(2) {
		c.Next = 0 // by this node's time zones the schedule ends here
	}
	if w.chance(8) {
		w.misplan(&c)
	}
	return c
}

// others are, at times, claims of the other shards of a tick.
func (w *world) others(c Claim) []Claim {
	var all []Claim
	for _, l := range w.view.pending {
		if c.Shard && l.Job == c.Job && l.Of != "" && l.Run != c.Run && w.chance(50) {
			c.Run = l.Run
			all = append(all, c)
		}
	}
	return all
}

// plan fills in what a claim passes and runs, from its cursor on.
func (w *world) plan(c *Claim, r rhythm, e Entry) {
	at, now := c.From, w.ms()
	pass := func(outcome jobs.Outcome, reason string, before int64) bool {
		n, last := r.count(at, min(before, now+1))
		if n < 1 || r.every == 0 {
			return false
		}
		c.Passes = append(c.Passes, Pass{Outcome: outcome, Reason: reason, First: at, Last: last, Count: n, Next: r.next(last)})
		at = r.next(last)
		return true
	}
	busy := r.overlap == jobs.OverlapQueue || r.overlap == jobs.OverlapReplace
	for at != 0 && at <= now && len(c.Passes) < 8 {
		switch pausing := e.Pause.until(at); {
		case pausing > 0 && pass(jobs.OutcomePaused, ReasonPaused, pausing):
			continue
		case busy && e.Busy.Holds(at):
			c.Trigger = jobs.TriggerSchedule
			_, last := r.count(at, min(e.Busy.To, now+1, e.Pause.from(at)))
			if w.chance(8) {
				last++ // also the one that has to run
			}
			if last > at && pass(jobs.OutcomeSkipped, ReasonOverlap, last) && w.chance(8) {
				continue // and another one does
			}
		case w.chance(45):
			before, reason := min(now+1, e.Pause.from(at)), pick(w, []string{ReasonLate, ReasonStartWithin, ReasonCatchUpMax})
			if busy && reason != ReasonStartWithin && w.chance(90) {
				before = min(before, e.Busy.from(at))
			}
			if _, last := r.count(at, before); last > at && w.chance(80) {
				before = last // but for the newest
			}
			if c.Trigger = jobs.TriggerCatchUp; busy && e.Busy.Holds(at) && w.chance(80) {
				c.Trigger = jobs.TriggerSchedule
			}
			if pass(jobs.OutcomeMissed, reason, before) {
				continue
			}
		}
		c.Tick, c.Next = at, r.next(at)
		return
	}
	if c.Next = at; len(c.Passes) == 0 {
		c.Tick, c.Next = at, r.next(at) // too early
	}
}

// until is where the window ends that holds an instant, 0 when it does not.
func (w Window) until(at int64) int64 {
	switch {
	case !w.Holds(at):
		return 0
	case w.To == 0:
		return never
	}
	return w.To
}

// from is where the window begins, if that is after an instant.
func (w Window) from(at int64) int64 {
	if w.From > at {
		return w.From
	}
	return never
}

// misplan makes one mistake in a claim.
func (w *world) misplan(c *Claim) {
	c.Passes = slices.Clone(c.Passes)
	if len(c.Passes) == 0 {
		switch w.rng.IntN(5) {
		case 0:
			c.Tick -= 1000
		case 1:
			c.Next = c.Tick
		case 2:
			c.Tick = 0
		case 3:
			c.Passes = []Pass{{Outcome: jobs.OutcomeSkipped, Reason: ReasonOverlap, First: c.From, Last: c.From, Count: 1, Next: c.From + 1}}
		default:
			c.Passes = []Pass{{Outcome: jobs.OutcomePaused, Reason: ReasonPaused, First: c.From, Last: c.From, Count: 1, Next: c.Tick}}
		}
		return
	}
	p := &c.Passes[w.rng.IntN(len(c.Passes))]
	switch w.rng.IntN(7) {
	case 0:
		p.Outcome = pick(w, []jobs.Outcome{jobs.OutcomePaused, jobs.OutcomeSkipped, jobs.OutcomeMissed})
	case 1:
		p.First += 500
	case 2:
		p.Last += pick(w, []int64{-60_000, 60_000, -1, 1})
	case 3:
		p.Next += pick(w, []int64{-500, 500})
	case 4:
		c.Passes = c.Passes[1:]
	case 5:
		c.Tick, c.Next = 0, c.Tick
	default:
		c.Passes = append(c.Passes, *p)
	}
}
