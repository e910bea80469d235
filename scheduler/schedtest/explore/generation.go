package explore

// promote makes a generation the active one. Orders are numbered by the control record.
func (w *world) promote(s *State, c Command) Answer {
	l := &s.Ledgers[c.Ledger]
	if c.Epoch <= l.Promotion && w.on(PromotionNumber) {
		return Moved
	}
	l.Generation, l.Promotion = c.Generation, c.Epoch
	return Settled
}

// askPromote is the operator promoting the other generation, or repeating an order of which it is
// not known whether it was carried out.
func (w *world) askPromote(s State) {
	c := Command{Kind: Promote, Node: nobody, Epoch: s.Ordered, Generation: s.Ordered % 2}
	if s.Known != s.Ordered {
		w.send(s, c, true)
		return
	}
	if s.Left.Promotions == 0 {
		return
	}
	s.Left.Promotions--
	s.Ordered++
	c.Epoch, c.Generation = s.Ordered, s.Ordered%2
	w.send(s, c, true)
}
