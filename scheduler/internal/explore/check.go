package explore

import (
	"fmt"
	"slices"
)

// breaks notes a broken promise; the first one of a step counts.
func (w *world) breaks(p Promise, format string, args ...any) {
	if w.broken == nil && !slices.Contains(w.Excused, p) {
		w.broken = &Violation{Promise: p, What: fmt.Sprintf(format, args...)}
	}
}

// grant leases a shard of the open tick, and holds the grant against the promises.
func (w *world) grant(s *State, c Command, attempt int8) {
	l := &s.Ledgers[0]
	w.checkOnce(s, c, attempt)
	w.checkAlone(s, c)
	w.checkAsker(s, c)
	if l.Count != l.Opened {
		w.breaks(P7, "tick %d began with %d shards and goes on with %d", c.Tick, l.Opened, l.Count)
	}
	w.countToken(s)
	l.Shards[c.Shard] = Shard{Phase: Leased, Attempt: attempt, Run: c.Run, Holder: c.Node, Until: ttl + max(0, c.Tick-s.Now)}
	l.Since = s.Now
}

// checkOnce holds P1 for a grant.
func (w *world) checkOnce(s *State, c Command, attempt int8) {
	bit := grantBit(c.Shard, attempt)
	if s.Granted[c.Tick]&bit != 0 {
		w.breaks(P1, "tick %d, shard %d, attempt %d was granted twice", c.Tick, c.Shard, attempt)
	}
	if attempt > 1 && s.Granted[c.Tick]&grantBit(c.Shard, attempt-1) == 0 {
		w.breaks(P1, "tick %d, shard %d: attempt %d was granted before attempt %d", c.Tick, c.Shard, attempt, attempt-1)
	}
	s.Granted[c.Tick] |= bit
}

func grantBit(shard, attempt int8) uint8 { return 1 << (shard*2 + attempt - 1) }

// checkAlone holds P4 for a grant: no other node is in the function for the same shard, or for
// another tick of the job.
func (w *world) checkAlone(s *State, c Command) {
	for i, n := range s.Nodes {
		if n.Power != Up || n.Phase != Executing || n.Deadline <= 0 || n.Run == c.Run {
			continue
		}
		if n.Tick != c.Tick || n.Shard == c.Shard {
			w.breaks(P4, "tick %d, shard %d was granted while node %d is in the function for tick %d, with %d left to its deadline",
				c.Tick, c.Shard, i, n.Tick, n.Deadline)
		}
	}
}

// checkAsker holds P6 for a grant: whoever asked still waits for the answer, or is gone.
func (w *world) checkAsker(s *State, c Command) {
	if c.Node == nobody {
		return
	}
	n := s.Nodes[c.Node]
	if n.Phase != Waiting || n.Ask.Run != c.Run {
		w.breaks(P6, "tick %d was granted to node %d, which lives and has given up on this run: nobody will run it", c.Tick, c.Node)
	}
}

// checkStart holds P1 for a function that begins: its tick is due.
func (w *world) checkStart(s *State, n *Node) {
	if w.MostSteps == 0 && n.Tick > s.Now {
		w.breaks(P1, "the function was called for tick %d at %d", n.Tick, s.Now)
	}
}

// countToken draws a token and holds P3. The token's state is kept as its distance to the
// greatest token granted, so that the world stays finite.
func (w *world) countToken(s *State) {
	l := &s.Ledgers[0]
	jump := int8(1)
	if l.Restarted && w.on(TokenGuard) {
		jump = guardJump
	}
	if jump <= l.Behind {
		w.breaks(P3, "a token was granted that is not greater than one granted before")
		jump = l.Behind + 1
	}
	w.jump = jump
	if other := &s.Ledgers[1]; w.Failovers > 0 {
		other.Behind = min(other.Behind+jump-l.Behind, many)
	}
	l.Behind, l.Restarted = 0, false
}

// account gives a tick its answer in the history and holds P2.
func (w *world) account(s *State, l *Ledger, tick int8, v Verdict) {
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

// checkStep holds P2 for a move of the cursor from one instant to before another: the history's
// rows join, and every tick of the stored schedule between them has an answer.
func (w *world) checkStep(l *Ledger, row, from, to int8) {
	if row != from {
		w.breaks(P2, "the chain does not close: a row begins at %d, and the cursor stood at %d", row, from)
	}
	for at := from; at < to && at < end; at++ {
		if w.Schedules[l.Digest].Has(at) && l.Verdicts[at] == Unanswered {
			w.breaks(P2, "tick %d vanished: the cursor has passed it and the history has no answer", at)
		}
	}
}

// checkBack holds P2 for a cursor that was set anew: no tick ahead of it has an answer already.
func (w *world) checkBack(s *State, l *Ledger, cursor int8) {
	for at := cursor; at < end; at++ {
		if w.Schedules[l.Digest].Has(at) && l.Verdicts[at] != Unanswered {
			w.breaks(P2, "the cursor was set back to %d, and tick %d has an answer already", cursor, at)
		}
	}
	if cursor <= s.Now && cursor < end {
		w.breaks(P2, "a new schedule begins at %d, which is past: it fires for what was before it", cursor)
	}
}

// checkSame holds P2 for a definition that takes the place of another and leaves the cursor where it is: what is due by the one
// is due by the other, no tick of the new one lies behind the cursor, and none ahead of it has an answer.
func (w *world) checkSame(s *State, l *Ledger, d Digest) {
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

// closeTick ends the open tick when all its shards are done.
func (w *world) closeTick(l *Ledger) {
	for i := range l.Count {
		if l.Shards[i].Phase != Done {
			return
		}
	}
	for i := range l.Opened {
		if l.Shards[i].Phase != Done {
			w.breaks(P7, "tick %d was closed with shard %d not ended", l.Tick, i)
		}
	}
	l.Verdicts[l.Tick] = Ran
	l.Tick, l.Count, l.Opened, l.Since, l.Shards = 0, 0, 0, 0, [2]Shard{}
}
