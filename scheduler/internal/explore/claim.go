package explore

// claim is the claim script: may I run this?
func (w *world) claim(s *State, c Command) Answer {
	l := &s.Ledgers[0]
	if w.on(ClockInClaim) && clockOff(c) {
		return WrongClock
	}
	if w.repeated(l, c) {
		return Granted
	}
	switch {
	case c.Asking:
		return Moved
	case c.Digest != l.Digest && w.on(DigestCompare):
		return Superseded
	}
	switch c.Kind {
	case ClaimShard:
		return w.claimShard(s, l, c)
	case ClaimPending:
		return w.claimPending(s, l, c)
	default:
		return w.claimTick(s, l, c)
	}
}

// clockOff is the rule against every clock trouble.
func clockOff(c Command) bool { return c.Clock > skew || c.Clock < -skew }

// repeated says whether this very claim was granted before.
func (w *world) repeated(l *Ledger, c Command) bool {
	for _, sh := range l.Shards {
		if sh.Phase == Leased && sh.Run == c.Run && (sh.Holder == c.Node || !w.on(SameAsker)) {
			return true
		}
	}
	return false
}

// claimTick moves the cursor over a tick and grants it, or records why it does not run.
func (w *world) claimTick(s *State, l *Ledger, c Command) Answer {
	switch {
	case c.Cursor != l.Cursor && w.on(CursorCompare):
		return Moved
	case c.Tick > s.Now+w.Ahead && w.on(NotEarly):
		return Early
	case w.mustWait(s, l, c.Tick):
		return Held
	}
	asked := w.Schedules[c.Digest]
	for at := c.Cursor; at < c.Tick; at++ {
		if asked.Has(at) {
			w.account(s, l, at, NotRun)
		}
	}
	from, held := l.Cursor, l.Tick != 0
	if held {
		w.account(s, l, c.Tick, NotRun)
	} else {
		w.account(s, l, c.Tick, Open)
	}
	w.checkStep(l, c.Cursor, from, c.Next)
	l.Cursor, l.Last = c.Next, c.Tick
	if held {
		return Skipped
	}
	l.Tick, l.Shards = c.Tick, [2]Shard{}
	l.Count, l.Opened = w.Shards[c.Digest], w.Shards[c.Digest]
	w.grant(s, c, 1)
	return Granted
}

// mustWait says whether a tick is merely late for a run that is going: it was due before that run
// was granted, so it does not overlap it. One that is not due yet overlaps nothing.
func (w *world) mustWait(s *State, l *Ledger, tick int8) bool {
	leased := l.Shards[0].Phase == Leased || l.Shards[1].Phase == Leased
	if leased && tick > s.Now && w.Ahead > 0 {
		return true
	}
	if !leased || l.Since <= tick {
		return false
	}
	if !w.on(HeldNotSkipped) {
		w.breaks(P2, "tick %d was recorded as overlapping a run that was granted only after it was due", tick)
		return false
	}
	return true
}

// claimShard grants a further shard of the open tick.
func (w *world) claimShard(s *State, l *Ledger, c Command) Answer {
	if l.Tick != c.Tick {
		return Moved
	}
	if !w.on(PinnedShards) {
		l.Count = w.Shards[c.Digest]
	}
	if c.Shard >= l.Count || l.Shards[c.Shard].Phase != Free {
		return Moved
	}
	w.grant(s, c, 1)
	return Granted
}

// claimPending grants a run that is pending: a rerun, or one that was handed back.
func (w *world) claimPending(s *State, l *Ledger, c Command) Answer {
	if l.Tick != c.Tick || c.Shard >= l.Count {
		return Moved
	}
	sh := l.Shards[c.Shard]
	if w.on(AttemptRule) && (sh.Phase != Pending || sh.Run != c.Run) {
		return Moved
	}
	w.grant(s, c, c.Attempt)
	return Granted
}
