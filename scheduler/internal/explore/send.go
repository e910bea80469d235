package explore

// Answer is what a script says.
type Answer string

// The answers.
const (
	NoAnswer   Answer = ""
	Granted    Answer = "granted"
	Settled    Answer = "done"
	WrongClock Answer = "your clock is wrong"
	Moved      Answer = "moved"
	Early      Answer = "early"
	Held       Answer = "held"
	Skipped    Answer = "skipped"
	Superseded Answer = "superseded"
	Lost       Answer = "lost"
	Alive      Answer = "alive"
)

// command is a call by a node, with what it knows.
func (w *world) command(s State, i int8, k Kind) Command {
	n := s.Nodes[i]
	return Command{
		Kind: k, Node: i, Digest: n.Digest, Clock: n.Clock,
		Run: n.Run, Tick: n.Tick, Shard: n.Shard, Deadline: w.localTTL(),
	}
}

// localTTL is how long a lease lasts for its holder.
func (w *world) localTTL() int8 {
	if w.on(DeadlineMargin) {
		return ttl - margin
	}
	return ttl
}

// send sends a command: it is answered at once, or the network does something to it. first says
// that no other copy of it was sent.
func (w *world) send(s State, c Command, first bool) {
	t := s
	a := w.execute(&t, c)
	w.answered(t, c, a, first, Event{What: Sent, Command: c, Answer: a})
	if !w.Network || s.Left.Faults == 0 {
		return
	}
	s.Left.Faults--
	t = s
	if a := w.execute(&t, c); t != s {
		w.emit(Event{What: ReplyLost, Command: c, Answer: a}, t)
	}
	w.broken = nil
	for i := range s.Flight {
		if s.Flight[i].Kind == None {
			s.Flight[i] = c
			w.emit(Event{What: Delayed, Command: c}, s)
			return
		}
	}
}

// deliver lets a delayed command arrive after all, or never.
func (w *world) deliver(s State, i int) {
	c := s.Flight[i]
	s.Flight[i] = Command{}
	w.emit(Event{What: Dropped, Command: c}, s)
	t := s
	a := w.execute(&t, c)
	broken := w.broken
	w.answered(t, c, a, false, Event{What: Delivered, Command: c, Answer: a})
	w.broken = broken
	w.emit(Event{What: DeliveredReplyLost, Command: c, Answer: a}, t)
}

// answered lets the reply arrive. A granted run may also be handed back, for no reason.
func (w *world) answered(s State, c Command, a Answer, first bool, e Event) {
	broken := w.broken
	w.hear(&s, c, a, first)
	w.checkTwins(&s)
	w.emit(e, s)
	if c.Node != nobody && s.Left.HandBacks > 0 && a == Granted && c.Kind <= ClaimPending &&
		(s.Nodes[c.Node].Phase == Executing || s.Nodes[c.Node].Phase == Ahead) && s.Nodes[c.Node].Run == c.Run {
		s.Left.HandBacks--
		s.Nodes[c.Node].Phase = Returning
		e.HandsBack = true
		w.broken = broken
		w.emit(e, s)
	}
}

// checkTwins holds P1 for a grant that was repeated: one run is executed by one node.
func (w *world) checkTwins(s *State) {
	a, b := s.Nodes[0], s.Nodes[1]
	begun := func(n Node) bool { return n.Phase == Executing || n.Phase == Ahead }
	if begun(a) && begun(b) && a.Run == b.Run {
		w.breaks(P1, "both nodes execute the same run of tick %d", a.Tick)
	}
}

// execute runs a script. Where there may be a failover, the copy stays one write behind.
func (w *world) execute(s *State, c Command) Answer {
	before := s.Ledgers[0]
	a := w.script(s, c)
	if w.Failovers > 0 && s.Ledgers[0] != before {
		if a == Granted && c.Kind <= ClaimPending {
			before.Behind = w.jump
		}
		s.Ledgers[1] = before
	}
	return a
}

func (w *world) script(s *State, c Command) Answer {
	switch c.Kind {
	case ClaimTick, ClaimShard, ClaimPending:
		return w.claim(s, c)
	case Renew:
		return w.renew(s, c)
	case Settle:
		return w.settle(s, c)
	case Reap:
		return w.reap(s, c)
	case Unclaim:
		return w.unclaim(s, c)
	case Define:
		return w.define(s, c)
	default:
		return NoAnswer
	}
}

// hear is what the sender does with the answer.
func (w *world) hear(s *State, c Command, a Answer, first bool) {
	if c.Node == nobody {
		return
	}
	n := &s.Nodes[c.Node]
	if n.Power != Up {
		return // the reply is lost on a process that stands still: it asks again
	}
	if a == WrongClock {
		sample(n)
	}
	switch c.Kind {
	case ClaimTick, ClaimShard, ClaimPending:
		if n.Phase == Waiting && n.Ask.Run == c.Run {
			w.hearClaim(s, n, c, a, first)
		}
	case Renew:
		if n.Phase == Executing && n.Run == c.Run {
			n.Deadline = max(n.Deadline, c.Deadline)
			if a == Lost {
				n.Phase = Finished
			}
		}
	case Settle, Unclaim:
		if (n.Phase == Finished || n.Phase == Returning) && n.Run == c.Run {
			idle(n)
		}
	case Define:
		n.View, n.Saw = 0, 0
	default:
	}
}

// hearClaim starts the run, or takes the no for an answer. While another copy may still be
// granted, no answer is a no: not even moved, for a replaced definition may set the cursor back.
func (w *world) hearClaim(s *State, n *Node, c Command, a Answer, first bool) {
	if a != Granted {
		if first || !w.on(NoIsFinalLater) {
			idle(n)
		}
		return
	}
	deadline := w.localTTL() - n.Age
	if !w.on(DeadlineFromFirst) {
		deadline = c.Deadline
	}
	*n = Node{
		Power: n.Power, Digest: n.Digest, Clock: n.Clock, Steady: n.Steady,
		Phase: Executing, Run: c.Run, Tick: c.Tick, Shard: c.Shard, Deadline: max(deadline, 0),
	}
	switch {
	case deadline <= 0:
		n.Phase = Returning
	case n.Tick > min(s.Now+n.Clock, ticks) && w.on(StartWhenDue):
		n.Phase = Ahead
	default:
		w.checkStart(s, n)
	}
}

// idle makes a node free for the next claim. It looks at the cursor anew.
func idle(n *Node) {
	*n = Node{
		Power: n.Power, Digest: n.Digest, Clock: n.Clock, Steady: n.Steady,
	}
}
