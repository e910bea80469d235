package model

import "slices"

// pass lets one unit of time go by.
func (w *world) pass(s State) {
	if s.Now < ticks {
		s.Now++
	}
	s.Highest = max(s.Highest, s.Now)
	shift(&s, 1)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == Waiting {
			n.Age++
		}
		n.Steady = min(n.Steady+1, ttl)
		n.Deadline = max(n.Deadline-1, 0)
		endAtDeadline(n)
	}
	for i := range s.Flight {
		f := &s.Flight[i]
		f.Clock--
		f.Deadline = max(f.Deadline-1, 0)
	}
	w.emit(Event{What: TimePassed}, s)
}

// endAtDeadline ends the function of a node, or the wait for it, when the deadline is over; of a
// paused node, when it goes on.
func endAtDeadline(n *Node) {
	switch {
	case n.Deadline > 0 || n.Power != Up:
	case n.Phase == Executing:
		n.Phase = Finished
	case n.Phase == Ahead:
		n.Phase = Returning
	}
}

// shift moves Redis' clock against the ends of the leases.
func shift(s *State, by int8) {
	for i := range s.Records {
		for j := range s.Records[i].Shards {
			if sh := &s.Records[i].Shards[j]; sh.Phase == Leased {
				sh.Until -= by
			}
		}
		s.Records[i].Token = later(s.Records[i].Token, by)
	}
	s.Greatest = later(s.Greatest, by)
}

// later is a distance of few µs to Redis' clock when the clock has moved.
func later(distance, by int8) int8 {
	if by > 0 {
		return -1
	}
	return distance
}

// step is Redis' clock being set. Between two steps every node that lives looks at the clock; a
// swing between two looks is beyond the protocol.
func (w *world) step(s State) {
	if s.Left.Steps == 0 || slices.ContainsFunc(s.Nodes[:], func(n Node) bool { return n.Clock != 0 }) {
		return
	}
	s.Left.Steps--
	for _, by := range w.Steps {
		t := s
		t.Now = min(max(t.Now+by, -ticks), ticks)
		t.Highest = max(t.Highest, t.Now)
		shift(&t, by)
		for i := range t.Nodes {
			if t.Nodes[i].Power != Down {
				t.Nodes[i].Clock -= by
				if w.Attentive {
					sample(&t.Nodes[i])
				}
			}
		}
		for i := range t.Flight {
			if t.Flight[i].Kind != None {
				t.Flight[i].Clock -= by
			}
		}
		w.emit(Event{What: ClockStepped, By: by}, t)
	}
}

// sample is a node's look at Redis' clock. Any change begins the wait for a steady clock anew.
func sample(n *Node) {
	if n.Clock != 0 {
		n.Clock, n.Steady = 0, 0
	}
}

// crash kills a process, pause stops one. Both are drawn from the same budget as the network's
// faults: what matters is how they meet, not how many there are.
func (w *world) crash(s State, i int8) {
	if !w.Crashes || s.Left.Faults == 0 {
		return
	}
	s.Left.Faults--
	w.replaceProcess(&s, i)
	s.Nodes[i] = Node{Power: Down, Digest: s.Nodes[i].Digest}
	w.emit(Event{What: Crashed, Node: i}, s)
}

func (w *world) pause(s State, i int8) {
	if !w.Pauses || s.Left.Faults == 0 {
		return
	}
	s.Left.Faults--
	s.Nodes[i].Power = Paused
	w.emit(Event{What: WasPaused, Node: i}, s)
}

func (w *world) resume(s State, i int8) {
	s.Nodes[i].Power = Up
	endAtDeadline(&s.Nodes[i])
	w.emit(Event{What: Resumed, Node: i}, s)
}

func (w *world) restart(s State, i int8) {
	s.Nodes[i].Power = Up
	w.emit(Event{What: Restarted, Node: i}, s)
}

// replaceProcess puts a new process in a node's place: it has no memory, and the old
// one's leases and commands stay without a node.
func (w *world) replaceProcess(s *State, i int8) {
	n := s.Nodes[i]
	s.Nodes[i] = Node{Digest: n.Digest}
	for l := range s.Records {
		for j := range s.Records[l].Shards {
			if sh := &s.Records[l].Shards[j]; sh.Phase == Leased && sh.Holder == i {
				sh.Holder = nobody
			}
		}
	}
	for j := range s.Flight {
		if f := &s.Flight[j]; f.Kind != None && f.Node == i {
			f.Node = nobody
		}
	}
}

// failover puts the copy that lacks the last write in the ledger's place.
func (w *world) failover(s State) {
	if s.Left.Failovers == 0 {
		return
	}
	s.Left.Failovers--
	s.Records[0] = s.Records[1]
	s.Records[0].Restarted = true
	s.Records[1] = s.Records[0]
	w.emit(Event{What: FailedOver}, s)
}
