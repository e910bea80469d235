package model

// expand takes every step that is possible in a state.
func (w *world) expand(s State) {
	w.pass(s)
	w.step(s)
	w.failover(s)
	for i := range s.Flight {
		if s.Flight[i].Kind != None {
			w.deliver(s, i)
		}
	}
	for i := range int8(len(s.Nodes)) {
		switch s.Nodes[i].Power {
		case Down:
			w.restart(s, i)
		case Paused:
			w.crash(s, i)
			w.resume(s, i)
		default:
			w.crash(s, i)
			w.pause(s, i)
			w.live(s, i)
		}
	}
}

// live is what a node may do.
func (w *world) live(s State, i int8) {
	w.deploy(s, i)
	if s.Nodes[i].Clock != 0 {
		t := s
		sample(&t.Nodes[i])
		w.emit(Event{What: Sampled, Node: i}, t)
	}
	switch n := s.Nodes[i]; n.Phase {
	case Idle:
		w.look(s, i)
		w.requestDefine(s, i)
		w.requestClaims(s, i)
	case Waiting:
		w.repeatClaim(s, i)
	case Ahead:
		w.start(s, i)
	case Executing:
		w.send(s, w.command(s, i, Renew), true)
		s := s
		s.Nodes[i].Phase = Finished
		w.emit(Event{What: Returned, Node: i}, s)
	case Returning:
		w.send(s, w.command(s, i, Unclaim), true)
	case Finished:
		w.send(s, w.command(s, i, Settle), true)
	}
	w.requestReaps(s, i)
}

// look reads the cursor and which definition is stored.
func (w *world) look(s State, i int8) {
	n, l := &s.Nodes[i], &s.Records[0]
	if n.View != l.Cursor || n.Saw != l.Digest {
		n.View, n.Saw = l.Cursor, l.Digest
		w.emit(Event{What: Looked, Node: i}, s)
	}
}

// requestClaims claims what the node may want: the first tick that is due or the latest one, with
// those before it recorded as missed; pending runs and shards.
func (w *world) requestClaims(s State, i int8) {
	n, l := s.Nodes[i], s.Records[0]
	own := w.Schedules[n.Digest]
	now := min(s.Now+n.Clock, ticks)
	if n.View > 0 {
		first := own.Next(n.View - 1)
		last := first
		for own.Next(last) <= now {
			last = own.Next(last)
		}
		if first <= now+w.Ahead && first < end {
			w.claimNext(s, i, first)
		}
		if last > first {
			w.claimNext(s, i, last)
		}
	}
	for j, sh := range l.Shards {
		if sh.Phase == Pending {
			c := w.command(s, i, ClaimPending)
			c.Tick, c.Shard, c.Run, c.Attempt, c.Part = l.Tick, int8(j), sh.Run, sh.Attempt, l.TickID != 0
			w.request(s, c)
		}
	}
}

// start calls the function of a run that was granted ahead, once its tick is due by what the node
// believes.
func (w *world) start(s State, i int8) {
	n := &s.Nodes[i]
	if n.Tick > min(s.Now+n.Clock, ticks) {
		return
	}
	n.Phase = Executing
	w.checkStart(&s, n)
	w.emit(Event{What: Started, Node: i}, s)
}

func (w *world) claimNext(s State, i, tick int8) {
	c := w.command(s, i, ClaimTick)
	c.Run, c.Tick, c.Shard = freshRun(&s), tick, 0
	c.Cursor, c.Next = s.Nodes[i].View, w.Schedules[c.Digest].Next(tick)
	w.request(s, c)
}

// request sends the first copy of a claim.
func (w *world) request(s State, c Command) {
	n := &s.Nodes[c.Node]
	n.Phase, n.Ask, n.Run, n.View, n.Saw = Waiting, c, c.Run, 0, 0
	w.send(s, c, true)
}

// repeatClaim repeats a claim: for max_skew as it was, then merely asking for a grant that was
// made. When no copy can be granted any more, the node gives up.
func (w *world) repeatClaim(s State, i int8) {
	n := s.Nodes[i]
	if n.Age > 2*skew {
		idle(&s.Nodes[i])
		w.emit(Event{What: GaveUp, Node: i, Command: n.Ask}, s)
		return
	}
	c := n.Ask
	c.Clock, c.Deadline = n.Clock, w.localTTL()
	c.Asking = n.Age > skew
	w.send(s, c, false)
}

// requestReaps sends a reap for any lease: the script must not depend on the judgement of its
// sender, only on a clock that has been steady.
func (w *world) requestReaps(s State, i int8) {
	n := s.Nodes[i]
	if w.neverReap || w.on(SteadyClock) && n.Steady < ttl {
		return
	}
	for j, sh := range s.Records[0].Shards {
		// Where the clock never steps, asking before the lease lapsed is asking later.
		if sh.Phase == Leased && (sh.Until <= 0 || w.MostSteps > 0 || !w.on(UntilInReap)) {
			c := w.command(s, i, Reap)
			c.Run, c.Tick, c.Shard = sh.Run, s.Records[0].Tick, int8(j)
			w.send(s, c, true)
		}
	}
}

// lease finds the lease of a run.
func (l *Record) lease(run int8) *Shard {
	for i := range l.Shards {
		if sh := &l.Shards[i]; sh.Phase == Leased && sh.Run == run {
			return sh
		}
	}
	return nil
}

// freshRun is a number that no run in this world has; canonical takes the gaps out.
func freshRun(s *State) int8 {
	most := int8(0)
	for i := range s.Records {
		l := &s.Records[i]
		most = max(most, l.TickID, l.Shards[0].Run, l.Shards[1].Run)
	}
	for i := range s.Nodes {
		most = max(most, s.Nodes[i].Run, s.Flight[i].Run)
	}
	return most + 1
}
