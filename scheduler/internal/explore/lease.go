package explore

// lease finds the lease of a run.
func (l *Ledger) lease(run int8) *Shard {
	for i := range l.Shards {
		if sh := &l.Shards[i]; sh.Phase == Leased && sh.Run == run {
			return sh
		}
	}
	return nil
}

// renew moves the end of a lease, also of one that lapsed and was not reaped, and counts the beat.
func (w *world) renew(s *State, c Command) Answer {
	sh := s.Ledgers[0].lease(c.Run)
	if sh == nil {
		return Lost
	}
	sh.Until = ttl
	for i := range s.Flight {
		if f := &s.Flight[i]; f.Kind == Reap && f.Run == c.Run {
			f.Beating = true
		}
	}
	return Granted
}

// settle ends one's own run.
func (w *world) settle(s *State, c Command) Answer {
	l := &s.Ledgers[0]
	sh := l.lease(c.Run)
	if sh == nil && !w.on(OwnerInSettle) && l.Tick == c.Tick && l.Shards[c.Shard].Phase == Leased {
		sh = &l.Shards[c.Shard]
	}
	if sh == nil {
		return Lost
	}
	*sh = Shard{Phase: Done}
	w.closeTick(l)
	return Settled
}

// reap ends somebody else's run. With attempts left, the next one goes into pending.
func (w *world) reap(s *State, c Command) Answer {
	if w.on(ClockInReap) && clockOff(c) {
		return WrongClock
	}
	l := &s.Ledgers[0]
	sh := l.lease(c.Run)
	switch {
	case sh == nil:
		return Lost
	case c.Beating && w.on(BeatInReap), sh.Until > 0 && w.on(UntilInReap):
		return Alive
	}
	if sh.Attempt < w.Attempts {
		*sh = Shard{Phase: Pending, Attempt: sh.Attempt + 1, Run: freshRun(s)}
	} else {
		*sh = Shard{Phase: Done}
		w.closeTick(l)
	}
	return Settled
}

// unclaim hands back a run whose function was not called: pending again, same attempt, under a
// fresh id that nobody else knows.
func (w *world) unclaim(s *State, c Command) Answer {
	l := &s.Ledgers[0]
	sh := l.lease(c.Run)
	if sh == nil {
		return Lost
	}
	s.Granted[l.Tick] &^= grantBit(c.Shard, sh.Attempt)
	id := sh.Run
	if w.on(FreshIDInUnclaim) {
		id = freshRun(s)
	}
	*sh = Shard{Phase: Pending, Attempt: sh.Attempt, Run: id}
	return Settled
}

// freshRun is a run id that nobody in this world knows; canonical takes the gaps out.
func freshRun(s *State) int8 {
	most := int8(0)
	for i := range s.Ledgers {
		for j := range s.Ledgers[i].Shards {
			most = max(most, s.Ledgers[i].Shards[j].Run)
		}
	}
	for i := range s.Nodes {
		most = max(most, s.Nodes[i].Run, s.Flight[i].Run)
	}
	return most + 1
}
