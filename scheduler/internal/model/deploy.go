package model

// requestDefine is a node with another definition than the stored one. The newest build among the
// living decides: the second definition is the newer one.
func (w *world) requestDefine(s State, i int8) {
	n := s.Nodes[i]
	if n.Digest == n.Saw || n.View == 0 || n.Digest < n.Saw && heldByLiving(&s, n.Saw) {
		return
	}
	now := min(max(s.Now+n.Clock, 0), ticks)
	c := w.command(s, i, Define)
	c.Cursor, c.Was, c.Tick = n.View, n.Saw, now
	if w.Schedules[n.Digest] == w.Schedules[n.Saw] || !w.on(SameSchedule) {
		c.Same, c.Cursor, c.Tick = true, 0, 0
		w.send(s, c, true)
		return
	}
	// The node has read the latest instant accounted for, or not yet.
	c.Next = w.Schedules[n.Digest].Next(max(now, s.Records[0].Last))
	w.send(s, c, true)
	if next := w.Schedules[n.Digest].Next(now); next != c.Next {
		c.Next = next
		w.send(s, c, true)
	}
}

func heldByLiving(s *State, d Digest) bool {
	for _, n := range s.Nodes {
		if n.Power != Down && n.Digest == d {
			return true
		}
	}
	return false
}

// deploy restarts an idle node with another definition, a newer or an older one.
func (w *world) deploy(s State, i int8) {
	if s.Left.Deploys == 0 || s.Nodes[i].Phase != Idle {
		return
	}
	s.Left.Deploys--
	was := s.Nodes[i].Digest
	w.replaceProcess(&s, i)
	for d := range w.Newest + 1 {
		if d != was {
			s.Nodes[i].Digest = d
			w.emit(Event{What: Deployed, Node: i, By: int8(d)}, s)
		}
	}
}
