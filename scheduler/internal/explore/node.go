package explore

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
		w.askDefine(s, i)
		w.askClaims(s, i)
	case Waiting:
		w.askAgain(s, i)
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
	w.askReaps(s, i)
}

// look reads the cursor and which definition is stored.
func (w *world) look(s State, i int8) {
	n, l := &s.Nodes[i], &s.Ledgers[0]
	if n.View != l.Cursor || n.Saw != l.Digest {
		n.View, n.Saw = l.Cursor, l.Digest
		w.emit(Event{What: Looked, Node: i}, s)
	}
}

// askClaims claims what the node may want: the first tick that is due or the latest one, with
// those before it recorded as missed; a free shard of the open tick; what is pending.
func (w *world) askClaims(s State, i int8) {
	n, l := s.Nodes[i], s.Ledgers[0]
	own := w.Schedules[n.Digest]
	now := min(s.Now+n.Clock, ticks)
	if n.View > 0 {
		first := own.Next(n.View - 1)
		last := first
		for own.Next(last) <= now {
			last = own.Next(last)
		}
		for shard := range w.Shards[n.Digest] {
			if first <= now+w.Ahead && first < end {
				w.askTick(s, i, first, shard)
			}
			if last > first {
				w.askTick(s, i, last, shard)
			}
		}
	}
	for j, sh := range l.Shards {
		c := w.command(s, i, ClaimShard)
		c.Tick, c.Shard, c.Run = l.Tick, int8(j), freshRun(&s)
		switch {
		case l.Tick == 0:
		case sh.Phase == Free && (c.Shard < l.Count || !w.on(PinnedShards) && c.Shard < w.Shards[n.Digest]):
			w.ask(s, c)
		case sh.Phase == Pending:
			c.Kind, c.Run, c.Attempt = ClaimPending, sh.Run, sh.Attempt
			w.ask(s, c)
		}
	}
}

// start calls the function of a run that was granted ahead, once its tick is due by what the node believes.
func (w *world) start(s State, i int8) {
	n := &s.Nodes[i]
	if n.Tick > min(s.Now+n.Clock, ticks) {
		return
	}
	n.Phase = Executing
	w.checkStart(&s, n)
	w.emit(Event{What: Started, Node: i}, s)
}

func (w *world) askTick(s State, i, tick, shard int8) {
	c := w.command(s, i, ClaimTick)
	c.Run, c.Tick, c.Shard = freshRun(&s), tick, shard
	c.Cursor, c.Next = s.Nodes[i].View, w.Schedules[c.Digest].Next(tick)
	w.ask(s, c)
}

// ask sends the first copy of a claim.
func (w *world) ask(s State, c Command) {
	n := &s.Nodes[c.Node]
	n.Phase, n.Ask, n.Run, n.View, n.Saw = Waiting, c, c.Run, 0, 0
	w.send(s, c, true)
}

// askAgain repeats a claim: for max_skew as it was, then merely asking for a grant that was made.
// When no copy can be granted any more, the node gives up.
func (w *world) askAgain(s State, i int8) {
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

// askReaps asks to reap whatever lease there is: the script must not depend on the eye of the
// one who asks, only on its clock having been steady.
func (w *world) askReaps(s State, i int8) {
	n := s.Nodes[i]
	if w.neverReap || w.on(SteadyClock) && n.Steady < ttl {
		return
	}
	for j, sh := range s.Ledgers[0].Shards {
		// Where the clock never steps, asking before the lease lapsed is asking later.
		if sh.Phase == Leased && (sh.Until <= 0 || w.MostSteps > 0 || !w.on(UntilInReap)) {
			c := w.command(s, i, Reap)
			c.Run, c.Tick, c.Shard = sh.Run, s.Ledgers[0].Tick, int8(j)
			w.send(s, c, true)
		}
	}
}
