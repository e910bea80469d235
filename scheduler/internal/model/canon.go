package model

import "cmp"

// canonical gives one form to states that no later step can distinguish: tidy cuts values that do
// not matter any more, and nodes and runs get new names. The world stays small by it.
func (w *world) canonical(s *State) {
	w.tidy(s)
	if w.Deploys == 0 && nodesSwapped(s) {
		swapNodes(s)
	}
	renumber(s)
}

// tidy is what canonical does without changing a name.
func (w *world) tidy(s *State) {
	for i := range s.Records {
		w.tidyRecord(s, &s.Records[i])
	}
	for i := range s.Nodes {
		w.tidyNode(s, &s.Nodes[i])
	}
	for i := range s.Flight {
		if f := &s.Flight[i]; f.Kind == None || w.spent(s, *f) {
			*f = Command{} // it would change nothing, and its sender can send another one
		} else {
			tidyCommand(f)
		}
	}
	if w.Failovers == 0 {
		// Whatever is granted of a tick that has its answer is one too many.
		for at, v := range s.Records[0].Verdicts {
			if v == NotRun || v == Ran {
				s.Granted[at] = 0xff
			}
		}
	}
}

// back is how far Redis' clock may still step back.
func (w *world) back(left int8) int8 {
	most := int8(0)
	if left > 0 {
		for _, by := range w.Steps {
			most = max(most, -by)
		}
	}
	return most * left
}

// tidyRecord: how long ago a lease lapsed matters only if the clock may step back; when the holder
// was granted only while a tick that was due before is ahead; and when a pending run came back only
// before that time. Tokens matter where a failover may lose one.
func (w *world) tidyRecord(s *State, l *Record) {
	for i := range l.Shards {
		switch sh := &l.Shards[i]; {
		case sh.Phase == Leased:
			sh.Until = max(sh.Until, -w.back(s.Left.Steps))
			if l.TickID != 0 {
				sh.Since = -ticks
			} else {
				sh.Since = w.tidySince(l, sh.Since)
			}
		case sh.Phase == Pending && sh.Since <= s.Now-w.back(s.Left.Steps):
			sh.Since = -ticks
		}
	}
	if l.TickID != 0 {
		l.Since = w.tidySince(l, l.Since)
	}
	if w.Deploys == 0 {
		l.Last = 0
		for i, at := range l.Busy {
			if at != 0 && at <= l.Cursor {
				l.Busy[i] = -ticks
			}
		}
	}
	if w.Failovers == 0 || s.Left.Failovers == 0 && !l.Restarted {
		l.Token, s.Greatest = 0, 0
	}
}

func (w *world) tidySince(l *Record, since int8) int8 {
	if since <= l.Cursor && w.Deploys == 0 {
		return -ticks
	}
	return since
}

// tidyNode: a clock that never steps is steady, and a process that is down has no memory. A cursor
// that never comes back need not be remembered: a claim from an old one is refused whenever it
// comes.
func (w *world) tidyNode(s *State, n *Node) {
	if w.MostSteps == 0 || n.Power == Down {
		n.Steady = ttl
	}
	if n.Power == Up && n.Phase == Idle && w.Deploys == 0 && w.on(CursorCompare) {
		n.View = s.Records[0].Cursor
		n.Saw = s.Records[0].Digest
	}
	if n.Power == Up && n.Phase == Finished {
		n.Deadline = 0
	}
	if n.Phase == Waiting {
		n.Age = min(n.Age, 2*skew+1)
		n.Ask.Clock, n.Ask.Deadline = 0, 0
	}
}

// tidyCommand: only scripts that look at the caller's clock carry it.
func tidyCommand(c *Command) {
	switch c.Kind {
	case Renew, Settle, Unclaim:
		c.Clock = 0
	default:
	}
	if c.Kind != Renew && c.Kind > ClaimPending {
		c.Deadline = 0
	}
}

// spent reports whether a command in flight can change nothing any more.
func (w *world) spent(s *State, c Command) bool {
	late := c.Clock < -skew-w.back(s.Left.Steps)
	known := s.Records[0].lease(c.Run) != nil
	switch c.Kind {
	case ClaimTick, ClaimPending:
		return late && w.on(ClockInClaim)
	case Define:
		return late && w.on(ClockInDefine)
	case Reap:
		return late && w.on(ClockInReap) || !known || c.Beating && w.on(BeatInReap)
	case Settle:
		return !known && w.on(OwnerInSettle)
	case Renew, Unclaim:
		return !known
	default:
		return false
	}
}

// swapNodes gives the nodes each other's names.
func swapNodes(s *State) {
	s.Nodes[0], s.Nodes[1] = s.Nodes[1], s.Nodes[0]
	for i := range s.Records {
		for j := range s.Records[i].Shards {
			if sh := &s.Records[i].Shards[j]; sh.Phase == Leased && sh.Holder != nobody {
				sh.Holder = 1 - sh.Holder
			}
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase == Waiting {
			n.Ask.Node = 1 - n.Ask.Node
		}
	}
	for i := range s.Flight {
		if f := &s.Flight[i]; f.Kind != None && f.Node != nobody {
			f.Node = 1 - f.Node
		}
	}
}

// nodesSwapped reports whether the second node comes before the first, by their state and the
// commands under way, whatever their names are.
func nodesSwapped(s *State) bool {
	for _, rank := range []func(*State, int8) uint64{nodeRank, claimRank, trailRank} {
		if a, b := rank(s, 0), rank(s, 1); a != b {
			return b < a
		}
	}
	return false
}

func nodeRank(s *State, i int8) uint64 {
	n := &s.Nodes[i]
	return rank(int8(n.Power), int8(n.Phase), n.Tick, n.Shard, n.View, n.Clock, n.Steady+8*n.Age, n.Deadline)
}

func claimRank(s *State, i int8) uint64 { return commandRank(&s.Nodes[i].Ask) }

// trailRank is what else bears a node's name: leases, and commands under way.
func trailRank(s *State, i int8) uint64 {
	var r uint64
	for l := range s.Records {
		for _, sh := range s.Records[l].Shards {
			r <<= 1
			if sh.Phase == Leased && sh.Holder == i {
				r++
			}
		}
	}
	for j := range s.Flight {
		if f := &s.Flight[j]; f.Kind != None && f.Node == i {
			r += commandRank(f) // a sum, for the order in flight means nothing
		}
	}
	return r
}

// commandRank leaves out who sent the command and for which run.
func commandRank(c *Command) uint64 {
	odd := int8(0)
	if c.Asking || c.Beating {
		odd = 1
	}
	if c.Same || c.Part {
		odd += 2
	}
	return rank(int8(c.Kind)+16*c.Attempt, c.Tick+8*c.Shard, c.Cursor+8*c.Next, int8(c.Digest+4*c.Was), odd, c.Clock, c.Deadline)
}

func rank(parts ...int8) uint64 {
	var r uint64
	for _, p := range parts {
		r = r<<8 | uint64(uint8(p))
	}
	return r
}

// renumber gives the runs the numbers 1, 2, ... in the order in which they are met, and puts what
// is under way in order.
func renumber(s *State) {
	var names [64]int8
	next := int8(0)
	name := func(run *int8) {
		if *run == 0 {
			return
		}
		if names[*run] == 0 {
			next++
			names[*run] = next
		}
		*run = names[*run]
	}
	for i := range s.Records {
		name(&s.Records[i].TickID)
		for j := range s.Records[i].Shards {
			name(&s.Records[i].Shards[j].Run)
		}
	}
	for i := range s.Nodes {
		name(&s.Nodes[i].Run)
		if n := &s.Nodes[i]; n.Phase == Waiting {
			n.Ask.Run = n.Run
		}
	}
	a, b := &s.Flight[0], &s.Flight[1]
	order := cmp.Or(cmp.Compare(commandRank(a), commandRank(b)), cmp.Compare(a.Node, b.Node), cmp.Compare(names[a.Run], names[b.Run]))
	if order > 0 {
		*a, *b = *b, *a
	}
	name(&a.Run)
	name(&b.Run)
}
