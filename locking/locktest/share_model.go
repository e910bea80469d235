package locktest

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/escapement/escapement/locking"
)

// shareState is the model of a semaphore, or of a read-write lock: a few holds, each with a ttl
// whose end is known only within bounds, as in lockState. It has no queue: no call of a history
// requests a place.
type shareState struct {
	holds    []hold        // by owner; a hold that may have lapsed is unknown
	most     locking.Token // no smaller one may be granted
	lastBack int           // the owner that released last
	back     uint64        // one bit for each owner that ever released
}

// hold is one owner's hold.
type hold struct {
	owner    int
	write    bool          // excludes all other holds
	token    locking.Token // 0: granted in a call without an answer
	before   locking.Token // with token 0: the most before its grant
	below    locking.Token // with token 0: the first one known of a later grant; 0: none
	from, to time.Duration // it lapses between these
}

func (h hold) mayBeFree(w window) bool { return w.to >= h.from }

func (h hold) mayBeHeld(w window) bool { return w.from <= h.to }

// mayHave reports whether token may be h's.
func (h hold) mayHave(token locking.Token) bool {
	return h.token == token || h.token == 0 && token > h.before && (h.below == 0 || token < h.below)
}

// has is h with a token that it may have.
func (h hold) has(token locking.Token) hold {
	h.token, h.before, h.below = token, 0, 0
	return h
}

// lasts is h for another ttl.
func (h hold) lasts(ttl, asked time.Duration, w window) hold {
	h.from, h.to = asked+ttl-grain, forever
	if w.to < forever {
		h.to = w.to + ttl + grain
	}
	return h
}

// shareModel is a model of a semaphore; permits 0 is a read-write lock.
func shareModel(permits int) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{shareState{}} },
		Equal: func(a, b any) bool {
			x, y := a.(shareState), b.(shareState)
			return x.most == y.most && x.lastBack == y.lastBack && x.back == y.back && slices.Equal(x.holds, y.holds)
		},
		Hash: func(state any) uint64 {
			s := state.(shareState)
			sum := maphash.Comparable(hashSeed, [3]uint64{uint64(s.most), uint64(s.lastBack), s.back})
			for _, h := range s.holds {
				sum = sum*31 + maphash.Comparable(hashSeed, h)
			}
			return sum
		},
		Step: func(state, input, output any) []any {
			var next []any
			for _, s := range state.(shareState).after(input.(question), output.(answer), permits) {
				next = append(next, s)
			}
			return next
		},
	}
	return model.ToModel()
}

// after returns the states that may follow when q was answered with a.
func (s shareState) after(q question, a answer, permits int) []shareState {
	w := window{q.sent, a.came}
	if a.kind == unknownAnswer {
		w.to = forever
	}
	switch q.kind {
	case askAcquire:
		return s.afterAcquire(q, a, w, permits)
	case askRelease:
		return s.afterRelease(q, a, w)
	case askRenew:
		return s.afterRenew(q, a, w)
	case askOwner:
		return s.afterOwner(a, w)
	}
	return nil
}

// of returns owner's hold. It may have lapsed.
func (s shareState) of(owner int) (hold, bool) {
	i := slices.IndexFunc(s.holds, func(h hold) bool { return h.owner == owner })
	if i < 0 {
		return hold{}, false
	}
	return s.holds[i], true
}

// without is s without owner's hold.
func (s shareState) without(owner int) shareState {
	s.holds = slices.DeleteFunc(slices.Clone(s.holds), func(h hold) bool { return h.owner == owner })
	return s
}

// with is s with h, in place of its owner's hold.
func (s shareState) with(h hold) shareState {
	s = s.without(h.owner)
	i, _ := slices.BinarySearchFunc(s.holds, h.owner, func(h hold, owner int) int { return h.owner - owner })
	s.holds = slices.Insert(s.holds, i, h)
	return s
}

// inTheWay returns the holds of which some, or all, must have ended before q is granted; and of how many.
func (s shareState) inTheWay(q question, permits int) (holds []hold, ended int) {
	for _, h := range s.holds {
		if h.owner != q.owner && (permits > 0 || h.write || q.write) {
			holds = append(holds, h)
		}
	}
	if permits > 0 {
		return holds, max(0, len(holds)+1-permits)
	}
	return holds, len(holds)
}

// lapsed returns s after n of these holds have lapsed within w, in each possible way, and with the earliest moment at
// which they all have.
func (s shareState) lapsed(holds []hold, n int, w window) (states []shareState, from []time.Duration) {
	if n == 0 {
		return []shareState{s}, []time.Duration{0}
	}
	for i, h := range holds {
		if !h.mayBeFree(w) {
			continue
		}
		after, at := s.without(h.owner).lapsed(holds[i+1:], n-1, w)
		states = append(states, after...)
		for _, t := range at {
			from = append(from, max(t, h.from))
		}
	}
	return states, from
}

func (s shareState) afterAcquire(q question, a answer, w window, permits int) []shareState {
	switch a.kind {
	case heldBy:
		return s.refused(q, a, w, permits)
	case notOurs: // a late copy
		if s.back&(1<<q.owner) != 0 {
			return []shareState{s}
		}
	case granted:
		return s.grants(q, a.token, w, a.asked, permits)
	case unknownAnswer:
		return append(s.grants(q, 0, w, q.sent, permits), s)
	default: // no answer to this question
	}
	return nil
}

// refused returns the states after the answer "held".
func (s shareState) refused(q question, a answer, w window, permits int) []shareState {
	if own, holds := s.of(q.owner); holds {
		if !own.mayBeFree(w) {
			return nil // it would have been granted again
		}
		s = s.without(q.owner)
	}
	for _, h := range s.holds {
		if q.token != 0 && h.token == q.token {
			if rest, n := s.without(h.owner).inTheWay(q, permits); n > 0 && alive(rest, w) > len(rest)-n {
				continue // taking this one over is not enough
			}
			if !h.mayBeFree(w) {
				return nil // it would have been taken over
			}
			s = s.without(h.owner)
		}
	}
	holds, n := s.inTheWay(q, permits)
	holder, known := s.of(a.owner)
	if !known || !holder.mayBeHeld(w) || n == 0 || alive(holds, w) <= len(holds)-n {
		return nil
	}
	return []shareState{s}
}

// alive counts the holds that may be held.
func alive(holds []hold, w window) (n int) {
	for _, h := range holds {
		if h.mayBeHeld(w) {
			n++
		}
	}
	return n
}

// grants returns the states after a grant with this token, 0 for an unknown one.
func (s shareState) grants(q question, token locking.Token, w window, asked time.Duration, permits int) []shareState {
	var next []shareState
	own, holds := s.of(q.owner)
	if holds && own.mayBeHeld(w) { // again: the same grant
		same := own.lasts(q.ttl, asked, w)
		if token == 0 {
			next = append(next, s.with(same))
		} else if own.mayHave(token) {
			n := s.with(same.has(token))
			n.most = max(s.most, token)
			next = append(next, n)
		}
	}
	if holds && !own.mayBeFree(w) || s.lastBack == q.owner || token != 0 && token <= s.most {
		return next
	}
	fresh := func(s shareState, asked time.Duration) {
		h := hold{owner: q.owner, write: q.write, token: token}
		if token == 0 {
			h.before = s.most
		}
		for i, earlier := range s.holds {
			if token != 0 && earlier.token == 0 && earlier.below == 0 {
				s.holds = slices.Clone(s.holds)
				s.holds[i].below = token
			}
		}
		s.most = max(s.most, token)
		next = append(next, s.with(h.lasts(q.ttl, asked, w)))
	}
	free := func(s shareState) {
		way, n := s.inTheWay(q, permits)
		states, from := s.lapsed(way, n, w)
		for i := range states {
			fresh(states[i], max(asked, from[i]))
		}
	}
	s = s.without(q.owner)
	for _, h := range s.holds {
		if q.token != 0 && h.mayBeHeld(w) && h.mayHave(q.token) {
			free(s.without(h.owner))
		}
		if q.token != 0 && h.token == q.token && !h.mayBeFree(w) {
			return next // it was taken from this one, and from no other
		}
	}
	free(s)
	return next
}
