package explore

// turn is the first half of a promotion: from now on the gate says which order is the last one that came here.
func (w *world) turn(s *State, c Command) Answer {
	l := &s.Ledgers[c.Ledger]
	if c.Epoch < l.Promotion && w.on(OrderOfGates) {
		return Moved
	}
	l.Promotion = c.Epoch
	return Settled
}

// promote is the other half: it replaces the stored definition by that of another generation, if no other order came here
// after its own. The schedule is the same.
func (w *world) promote(s *State, c Command) Answer {
	l := &s.Ledgers[c.Ledger]
	switch {
	case c.Epoch != l.Promotion && w.on(PromotionNumber):
		return Moved
	case c.Digest == l.Digest && c.Generation == l.Generation:
		return Settled
	}
	return w.replaceSame(s, l, c)
}

// askPromote is the operator promoting the other generation, or repeating what of an order is not known to be carried out.
// Orders are numbered by the control record.
func (w *world) askPromote(s State) {
	if s.Known == s.Ordered {
		if s.Left.Promotions == 0 {
			return
		}
		s.Left.Promotions--
		s.Ordered++
	}
	c := Command{Kind: Turn, Node: nobody, Epoch: s.Ordered}
	if s.Turned == s.Ordered {
		l := &s.Ledgers[0]
		c.Kind, c.Generation, c.Was, c.WasGeneration = Promote, s.Ordered%2, l.Digest, l.Generation
		c.Digest = s.Nodes[c.Generation].Digest // the second node is of the second generation
	}
	w.send(s, c, true)
}
