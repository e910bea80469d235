package ledger

import (
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// holding is a run as its node knows it.
type holding struct {
	claim Claim
	lease Lease
	end   *Report // how it ended
	gap   *Pass
	tries int // so often it was told of, and others were to account for ticks before
}

// holds notes what the nodes know after an operation.
func (w *world) holds(o op, r reply) {
	drop := func(run string, gone func(h *holding) bool) {
		w.held = slices.DeleteFunc(w.held, func(h *holding) bool { return h.lease.Run == run && gone(h) })
	}
	all := func(*holding) bool { return true }
	for i, a := range r.answers {
		l := o.claims[i].Lease(a, o.by, o.now)
		same := func(h *holding) bool { return h.lease.Run == l.Run && h.lease.Token == l.Token }
		if a.Verdict == Granted && !slices.ContainsFunc(w.held, same) {
			w.repeated[l.Run] = w.repeated[l.Run] || l.Attempt > 1
			w.held = remember(w.held, &holding{claim: o.claims[i], lease: l}, 50)
		}
	}
	for i, word := range r.words {
		switch {
		case o.kind == "settle" && word == Settled:
			for _, h := range w.held {
				if h.lease.Run == o.reports[i].Run && h.end == nil {
					h.end = &o.reports[i]
				}
			}
		case o.kind == "settle" && word == Lost:
			drop(o.reports[i].Run, func(h *holding) bool { return o.reports[i].Token == 0 || h.lease.Token == o.reports[i].Token })
		case o.kind == "reap" && word == Reaped: // most often because the node is no more
			drop(o.seen[i].Run, func(h *holding) bool {
				h.end = &Report{Job: h.lease.Job, Run: h.lease.Run, Token: h.lease.Token, Outcome: jobs.OutcomeLost, Started: h.lease.Granted, Ended: w.ms(), Rerun: true}
				return w.chance(70)
			})
		case o.kind == "unclaim" && word == Returned:
			drop(o.returns[i].Run, all)
		}
	}
	for i, a := range r.asserted {
		if a.Word != Known && a.Word != Restored && a.Word != Behind && a.Word != Ended {
			drop(o.asserts[i].Lease.Run, func(h *holding) bool { return h.lease.Token == o.asserts[i].Lease.Token })
		}
	}
	if o.kind == "remove" {
		w.held = slices.DeleteFunc(w.held, func(h *holding) bool { return h.lease.Job == o.job })
	}
}

// assertion is what a node says of a run.
func (w *world) assertion(h *holding) Assertion {
	a, r := Assertion{Digest: h.claim.Digest, Lease: h.lease, Gap: h.gap}, rhythms[h.claim.Digest]
	if r.every > 0 && w.chance(95) {
		a.Next = r.next(h.lease.Tick)
	}
	if h.lease.Of != "" && (r.shards == h.lease.Shards && w.chance(95) || w.chance(10)) {
		a.Reopen, a.Params = true, r.params
	}
	return a
}

// answer takes up what a node was answered, and says whether it is to tell of the run again.
func (w *world) answer(h *holding, a Asserted) bool {
	if h.gap = nil; a.Word != Behind {
		return false
	}
	if h.tries++; h.tries > 1 && w.chance(60) {
		h.gap = &Pass{First: a.Cursor, Last: a.Cursor}
		if n, last := rhythms[h.claim.Digest].count(a.Cursor, h.lease.Tick); n > 0 && rhythms[h.claim.Digest].every > 0 {
			h.gap.Last, h.gap.Count = last, n
		}
	}
	return h.tries < 5
}

// bind says in an operation which server it is for, and which grants, as nodes do; at times the wrong ones.
func (w *world) bind(o *op) {
	if o.kind == "claim" || o.kind == "renew" || o.kind == "settle" {
		o.server = pick(w, []string{"", w.runID, w.runID, w.runID})
		if w.chance(4) {
			o.server = "0123"
		}
	}
	token := func(run string) locking.Token {
		for _, l := range w.view.leased {
			if l.Run == run && w.chance(60) {
				return l.Token - int64(w.rng.IntN(100)/96)
			}
		}
		return 0
	}
	for i := range o.reports {
		o.reports[i].Token = token(o.reports[i].Run)
	}
	for i := range o.renewals {
		o.renewals[i].Token -= int64(w.rng.IntN(100) / 96)
	}
	for i := range o.returns {
		o.returns[i].Token = token(o.returns[i].Run)
	}
}
