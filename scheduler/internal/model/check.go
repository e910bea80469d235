package model

import (
	"fmt"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// breaks notes a broken promise; the first one of a step counts.
func (w *world) breaks(p Promise, format string, args ...any) {
	if w.broken == nil && !slices.Contains(w.Excused, p) {
		w.broken = &Violation{Promise: p, What: fmt.Sprintf(format, args...)}
	}
}

// check holds a call against the promises. The world is as it was before the call; the ledger has
// done it.
func (w *world) check(s *State, c Command, a Answer) {
	l := &s.Records[0]
	first := l.Cursor
	chain := w.checkRows(s, l, c)
	for _, r := range w.job.runs {
		if r.Prev != 0 { // begun by this call: a link of the chain
			chain = w.checkLink(chain, r.Prev, r.Next)
			w.account(s, l, moment(r.Tick), Open)
			l.Opened = int8(r.Shards)
		} else if r.IsOpenTick && l.TickID == 0 { // of a run that was handed back
			l.Opened = int8(r.Shards)
			if r.Attempt > 1 {
				w.breaks(P7, "tick %d has begun as one run and goes on as %d shards", moment(r.Tick), r.Shards)
			}
		}
	}
	if a == Granted && l.lease(c.Run) == nil {
		w.checkGrant(s, c, w.job.leased(runID(c.Run)))
	}
	if sh := l.lease(c.Run); c.Kind == Unclaim && sh != nil { // the same attempt is granted anew
		s.Granted[l.Tick] &^= grantBit(c.Shard, sh.Attempt)
	}
	now := place(w.job.Cursor)
	if chain != now {
		w.breaks(P2, "the chain does not close: the last row leads to %d, and the cursor stands at %d", chain, now)
	}
	switch {
	case c.Kind == ClaimTick:
		w.checkPassed(l, first, now)
	case c.Kind != Define || a != Replaced:
	case c.Same:
		w.checkSame(s, l, c.Digest)
	default:
		w.checkPassed(l, first, max(c.Tick, s.Now)+1)
		w.checkBack(s, l, c.Digest, now)
	}
}

// checkRows holds the rows that a call wrote against the promises, and returns where the chain of
// the cursor's steps leads.
func (w *world) checkRows(s *State, l *Record, c Command) (chain int8) {
	schedule, chain := w.Schedules[c.Digest], l.Cursor
	if c.Kind == Define {
		schedule = w.Schedules[c.Was]
	}
	for i := range w.job.rows {
		r := &w.job.rows[i].Row
		switch {
		case r.Ranged:
			chain = w.checkLink(chain, r.Prev, r.Next)
			for at := moment(r.Tick); r.Count > 0 && at <= moment(r.Until); at++ {
				if schedule.Has(at) {
					w.account(s, l, at, NotRun)
				}
			}
			if since := l.since(); r.Reason == ledger.ReasonOverlap && since > moment(r.Tick) {
				w.breaks(P2, "tick %d was recorded as overlapping a run that was granted only after it was due", moment(r.Tick))
			}
		case r.IsTick:
			w.checkClosed(l, moment(r.Tick))
		case r.TickID == "" && len(w.job.runs) == 0:
			l.Verdicts[moment(r.Tick)] = Ran
		}
	}
	return chain
}

// checkLink holds P2 for a step of the cursor, which begins where the one before ended, and returns
// where it ends.
func (w *world) checkLink(from int8, prev, next int64) int8 {
	if place(prev) != from {
		w.breaks(P2, "the chain does not close: a row begins at %d, and the cursor stood at %d", place(prev), from)
	}
	return place(next)
}

// checkClosed holds P7 for a tick that is closed: all of its shards have ended.
func (w *world) checkClosed(l *Record, tick int8) {
	for _, r := range w.job.runs {
		if moment(r.Tick) == tick {
			w.breaks(P7, "tick %d was closed with shard %d not ended", tick, r.Shard)
		}
	}
	l.Verdicts[tick] = Ran
}

// since is when the run that holds the job was granted, or its tick opened.
func (l *Record) since() int8 {
	switch {
	case l.TickID != 0:
		return l.Since
	case l.Shards[0].Phase == Leased:
		return l.Shards[0].Since
	}
	return l.Busy[0]
}

// checkGrant holds a grant against the promises.
func (w *world) checkGrant(s *State, c Command, r *run) {
	tick, shard := moment(r.Tick), int8(r.Shard)
	w.checkOnce(s, tick, shard, int8(r.Attempt))
	w.checkAlone(s, c, tick, shard)
	w.checkClaimer(s, c, tick)
	shards := int8(r.Shards)
	if t := w.job.tick(r.TickID); t != nil {
		shards = int8(t.Shards)
	}
	if opened := s.Records[0].Opened; shards != opened {
		w.breaks(P7, "tick %d began with %d shards and goes on with %d", tick, opened, shards)
	}
	if w.job.Token <= w.ledger.us+int64(s.Greatest) {
		w.breaks(P3, "a token was granted that is not greater than one granted before")
	}
	s.Greatest = clip(w.job.Token - w.ledger.us)
}

// checkOnce holds P1 for a grant.
func (w *world) checkOnce(s *State, tick, shard, attempt int8) {
	bit := grantBit(shard, attempt)
	if s.Granted[tick]&bit != 0 {
		w.breaks(P1, "tick %d, shard %d, attempt %d was granted twice", tick, shard, attempt)
	}
	if attempt > 1 && s.Granted[tick]&grantBit(shard, attempt-1) == 0 {
		w.breaks(P1, "tick %d, shard %d: attempt %d was granted before attempt %d", tick, shard, attempt, attempt-1)
	}
	s.Granted[tick] |= bit
}

func grantBit(shard, attempt int8) uint8 { return 1 << (shard*2 + attempt - 1) }

// checkAlone holds P4 for a grant: no other node is in the function for the same shard, or for
// another tick of the job.
func (w *world) checkAlone(s *State, c Command, tick, shard int8) {
	for i, n := range s.Nodes {
		if n.Power != Up || n.Phase != Executing || n.Deadline <= 0 || n.Run == c.Run {
			continue
		}
		if n.Tick != tick || n.Shard == shard {
			w.breaks(P4, "tick %d, shard %d was granted while node %d is in the function for tick %d, with %d left to its deadline",
				tick, shard, i, n.Tick, n.Deadline)
		}
	}
}

// checkClaimer holds P6 for a grant: the node that claimed still waits for the answer, or is gone.
func (w *world) checkClaimer(s *State, c Command, tick int8) {
	if c.Node == nobody {
		return
	}
	n := s.Nodes[c.Node]
	if n.Phase != Waiting || n.Ask.Run != c.Run {
		w.breaks(P6, "tick %d was granted to node %d, which lives and has given up on this run: nobody will run it", tick, c.Node)
	}
}

// checkStart holds P1 for a function that begins: its tick is due.
func (w *world) checkStart(s *State, n *Node) {
	if w.MostSteps == 0 && n.Tick > s.Now {
		w.breaks(P1, "the function was called for tick %d at %d", n.Tick, s.Now)
	}
}

// account gives a tick its answer in the history and holds P2.
func (w *world) account(s *State, l *Record, tick int8, v Verdict) {
	switch {
	case l.Verdicts[tick] != Unanswered:
		w.breaks(P2, "tick %d has two answers in the history", tick)
	case v == NotRun && tick > s.Highest+skew:
		w.breaks(P2, "tick %d was recorded as not run before it was due", tick)
	case v == Open && tick > s.Now+w.Ahead:
		w.breaks(P2, "tick %d was granted long before it was due", tick)
	}
	l.Verdicts[tick] = v
}

// checkPassed holds P2 for a move of the cursor: every tick of the stored schedule that the cursor
// has passed has an answer.
func (w *world) checkPassed(l *Record, from, to int8) {
	for at := from; at < to && at < end; at++ {
		if w.Schedules[l.Digest].Has(at) && l.Verdicts[at] == Unanswered {
			w.breaks(P2, "tick %d vanished: the cursor has passed it and the history has no answer", at)
		}
	}
}

// checkBack holds P2 for a cursor that was set anew: no tick ahead of it has an answer already.
func (w *world) checkBack(s *State, l *Record, d Digest, cursor int8) {
	for at := cursor; at < end; at++ {
		if w.Schedules[d].Has(at) && l.Verdicts[at] != Unanswered {
			w.breaks(P2, "the cursor was set back to %d, and tick %d has an answer already", cursor, at)
		}
	}
	if cursor <= s.Now && cursor < end {
		w.breaks(P2, "a new schedule begins at %d, which is past: it fires for what was before it", cursor)
	}
}

// checkSame holds P2 for a definition that replaces another one and leaves the cursor where it is:
// a tick that is due by the old one is due by the other, no tick of the new one lies behind the
// cursor, and none ahead of it has an answer.
func (w *world) checkSame(s *State, l *Record, d Digest) {
	before, after := w.Schedules[l.Digest], w.Schedules[d]
	for at := int8(1); at < end; at++ {
		switch open := l.Verdicts[at] == Unanswered; {
		case at >= l.Cursor && at <= s.Now && open && before.Has(at) && !after.Has(at):
			w.breaks(P2, "tick %d vanished: it was due, and the definition that took over does not have it", at)
		case at >= l.Cursor && at <= s.Now && open && after.Has(at) && !before.Has(at):
			w.breaks(P2, "tick %d is past, and of a schedule that begins only now", at)
		case at > s.Now && at < l.Cursor && open && after.Has(at):
			w.breaks(P2, "tick %d vanished: the cursor that was left where it was has passed it", at)
		case at >= l.Cursor && !open && after.Has(at):
			w.breaks(P2, "the cursor was left at %d, and tick %d has an answer already", l.Cursor, at)
		}
	}
}
