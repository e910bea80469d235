package explore

import "slices"

// pass lets one unit of time go by, for everybody.
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
		hearDeadline(n)
	}
	for i := range s.Flight {
		f := &s.Flight[i]
		f.Clock--
		f.Deadline = max(f.Deadline-1, 0)
	}
	w.emit(Event{What: TimePassed}, s)
}

// hearDeadline ends the function of a node, or the wait for it, whose deadline is over; a paused one hears of it when
// it goes on.
func hearDeadline(n *Node) {
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
	for i := range s.Ledgers {
		for j := range s.Ledgers[i].Shards {
			if sh := &s.Ledgers[i].Shards[j]; sh.Phase == Leased {
				sh.Until -= by
			}
		}
	}
}

// step is Redis' clock being set. Between two steps every node that lives looks at the clock; a
// swing that nobody can have seen is beyond the protocol.
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
