package explore

// define replaces the stored definition, by compare-and-set on its digest and the cursor. Its old
// ticks up to the asker's instant are recorded; if another one has come due since, nothing is done.
// Where the schedule is the same the cursor stays, and is not compared.
func (w *world) define(s *State, c Command) Answer {
	l := &s.Ledgers[0]
	switch {
	case w.on(ClockInDefine) && clockOff(c):
		return WrongClock
	case c.Digest == l.Digest:
		return Settled // by an earlier copy, or by another node
	case c.Same:
		return w.replaceSame(s, l, c)
	case c.Was != l.Digest && w.on(DigestInDefine),
		c.Cursor != l.Cursor && w.on(CursorInDefine),
		c.Next <= s.Now && w.on(AfterNowInDefine),
		w.Schedules[c.Was].Next(c.Tick) <= s.Now && w.on(AllDueInDefine),
		c.Next < end && c.Next <= l.Last && w.on(AfterLastInDefine):
		return Moved
	}
	old := w.Schedules[c.Was]
	last := int8(0)
	for at := c.Cursor; at <= c.Tick; at++ {
		if old.Has(at) {
			w.account(s, l, at, NotRun)
			last = at
		}
	}
	w.checkStep(l, c.Cursor, l.Cursor, max(c.Tick, s.Now)+1)
	l.Last = max(l.Last, last)
	l.Cursor, l.Digest = c.Next, c.Digest
	w.checkBack(s, l, c.Next)
	return Settled
}

// replaceSame replaces a definition whose schedule stays: the cursor does as well, and no tick is given up.
func (w *world) replaceSame(s *State, l *Ledger, c Command) Answer {
	if c.Was != l.Digest && w.on(DigestInSame) {
		return Moved
	}
	w.checkSame(s, l, c.Digest)
	l.Digest = c.Digest
	return Settled
}

// askDefine is a node with another definition than the stored one. The newest build among the
// living decides: the second definition is the newer one.
func (w *world) askDefine(s State, i int8) {
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
	// The node knows the latest instant accounted for, or does not know it yet.
	c.Next = w.Schedules[n.Digest].Next(max(now, s.Ledgers[0].Last))
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
