package model

// Answer is the word of a script.
type Answer string

// The answers.
const (
	NoAnswer   Answer = ""
	Granted    Answer = "granted"
	Opened     Answer = "opened"
	Stale      Answer = "stale"
	Renewed    Answer = "renewed"
	Replaced   Answer = "replaced"
	Lost       Answer = "lost"
	WrongClock Answer = "clock"
)

// command is a call by a node, with the facts that the node has.
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

// send sends a command: it is answered at once, or the network delays or loses it. first: no other
// copy was sent.
func (w *world) send(s State, c Command, first bool) {
	t := s
	a := w.execute(&t, c)
	broken := w.broken
	w.answered(t, c, a, first, Event{What: Sent, Command: c, Answer: a})
	if !w.Network || s.Left.Faults == 0 {
		return
	}
	if t != s {
		t.Left.Faults--
		w.broken = broken
		w.emit(Event{What: ReplyLost, Command: c, Answer: a}, t)
	}
	s.Left.Faults--
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
	w.handleReply(&s, c, a, first)
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
	before := s.Records[0]
	a := w.script(s, c)
	if w.Failovers > 0 && s.Records[0] != before {
		s.Records[1] = before
	}
	return a
}

// handleReply lets the sender act on the answer.
func (w *world) handleReply(s *State, c Command, a Answer, first bool) {
	if c.Node == nobody {
		return
	}
	n := &s.Nodes[c.Node]
	if n.Power != Up {
		return // the reply is lost on a process that stands still: it sends another one
	}
	if a == WrongClock {
		sample(n)
	}
	switch c.Kind {
	case ClaimTick, ClaimPending:
		if n.Phase == Waiting && n.Ask.Run == c.Run {
			w.handleClaim(s, n, c, a, first)
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

// handleClaim starts the run, or takes the no for an answer. While another copy may still be
// granted, no answer is a no: not even stale, for a replaced definition may set the cursor back.
func (w *world) handleClaim(s *State, n *Node, c Command, a Answer, first bool) {
	if a != Granted {
		if first || a == Opened || !w.on(NoIsFinalLater) {
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
