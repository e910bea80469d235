package locktest

// The answers to release, renew and owner, in the model of a semaphore.

func (s shareState) afterRelease(q question, a answer, w window) []shareState {
	own, holds := s.of(q.owner)
	ours := holds && own.mayBeHeld(w)
	given := s.without(q.owner)
	given.lastBack, given.back = q.owner, s.back|1<<q.owner
	var next []shareState
	switch a.kind {
	case done:
		if ours {
			next = append(next, given)
		}
		if s.back&(1<<q.owner) != 0 && !holds { // earlier
			next = append(next, s)
		}
	case notOurs:
		switch {
		case s.lastBack == q.owner:
		case !holds || own.mayBeFree(w):
			next = append(next, s.without(q.owner))
		}
	case unknownAnswer:
		next = append(next, s)
		if ours {
			next = append(next, given)
		}
	default: // no answer to this question
	}
	return next
}

func (s shareState) afterRenew(q question, a answer, w window) []shareState {
	own, holds := s.of(q.owner)
	ours := holds && own.mayBeHeld(w) && own.mayHave(q.token)
	kept := s.with(own.lasts(q.ttl, q.sent, w).has(q.token))
	kept.most = max(s.most, q.token)
	var next []shareState
	switch a.kind {
	case done:
		if ours {
			next = append(next, kept)
		}
	case notOurs:
		switch {
		case !holds || own.token != q.token:
			next = append(next, s)
		case own.mayBeFree(w):
			next = append(next, s.without(q.owner))
		}
	case unknownAnswer:
		next = append(next, s)
		if ours {
			next = append(next, kept)
		}
	default: // no answer to this question
	}
	return next
}

// afterOwner: the answer names the living holder with the smallest token.
func (s shareState) afterOwner(a answer, w window) []shareState {
	first, known := s.of(a.owner)
	switch {
	case a.kind == unknownAnswer:
		return []shareState{s}
	case a.kind == heldBy && (!known || !first.mayBeHeld(w) || !first.mayHave(a.token)):
		return nil
	case a.kind == heldBy:
		s = s.with(first.has(a.token))
		s.most = max(s.most, a.token)
	}
	for _, h := range s.holds { // the waiters in front of it have lapsed
		if a.kind == free || h.token != 0 && h.token < a.token {
			if !h.mayBeFree(w) {
				return nil
			}
			s = s.without(h.owner)
		}
	}
	return []shareState{s}
}
