package locktest

import (
	"hash/maphash"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/escapement/escapement/locking"
)

// lockState is the model: one lock with a ttl. The end of its lease is known only within bounds, because a call may take
// effect at any time between its request and its answer.
//
// Five things are looser for a quorum (question.loose), whose servers answer independently:
//
//   - An acquisition without an answer may have got some servers and not all. It is taken back, so
//     its hold may end at any time, not only with its ttl. An acquisition with an answer is held
//     for its ttl as ever.
//   - Servers promise a token each, and the largest is granted. Until the call has returned, Owner
//     may show a smaller token that a majority happens to have; never a token that is not above the
//     previous grant's.
//   - A release without an answer may have reached some servers only. An owner whose next request
//     after it is refused takes back the rest with that request: so its next release may not be
//     answered as a repeated one.
//   - A server keeps the last owner that gave back, also without a majority: so after a release
//     that was not "done" the previous owner may be forgotten.
//   - "Held" may come without an owner, when the only fact is that no majority is to be had. An
//     owner that is named must have the lock.
type lockState struct {
	owner    int           // 0: free
	token    locking.Token // of the owner; 0: granted in a call without an answer
	most     locking.Token // no smaller one may be granted
	from, to time.Duration // its lease ends between these
	before   locking.Token // the most before the owner's grant
	came     time.Duration // the owner's grant
	lastBack int           // the owner that released last
	unsure   bool          // in a call without an answer
	back     uint64        // one bit for each owner that ever released
}

const (
	forever = time.Duration(1 << 62)
	nobody  = -1 // an owner outside of the history

	// grain is how coarse clocks are: milliseconds at the store, rounded either way.
	grain = 5 * time.Millisecond
)

var hashSeed = maphash.MakeSeed()

func lockModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{lockState{}} },
		Hash: func(state any) uint64 { return maphash.Comparable(hashSeed, state.(lockState)) },
		Step: func(state, input, output any) []any {
			var next []any
			for _, s := range state.(lockState).after(input.(question), output.(answer)) {
				next = append(next, s)
			}
			return next
		},
	}
	return model.ToModel()
}

// window is when a call may have taken effect.
type window struct{ from, to time.Duration }

func (s lockState) mayBeFree(w window) bool { return s.owner == 0 || w.to >= s.from }

func (s lockState) mayBeHeld(w window) bool { return s.owner != 0 && w.from <= s.to }

// after returns the states that the lock may be in when q was answered with a;
// none when it could not have answered so.
func (s lockState) after(q question, a answer) []lockState {
	w := window{q.sent, a.came}
	if a.kind == unknownAnswer {
		w.to = forever
	}
	switch q.kind {
	case askAcquire:
		return s.afterAcquire(q, a, w)
	case askRelease:
		return s.afterRelease(q, a, w)
	case askRenew:
		return s.afterRenew(q, a, w)
	case askOwner:
		return s.afterOwner(q, a, w)
	}
	return nil
}

func (s lockState) afterAcquire(q question, a answer, w window) []lockState {
	next := s.acquired(q, a, w)
	if q.loose && s.unsure && s.lastBack == q.owner {
		s.lastBack = 0
		next = append(next, s.acquired(q, a, w)...)
	}
	return next
}

func (s lockState) acquired(q question, a answer, w window) []lockState {
	switch a.kind {
	case heldBy:
		held := a.owner == s.owner && a.owner != q.owner && s.mayBeHeld(w)
		if q.loose && a.owner == nobody {
			return []lockState{s}
		}
		if held && (q.token == 0 || q.token != s.token) {
			return []lockState{s}
		}
	case notOurs: // a late copy
		if s.back&(1<<q.owner) != 0 {
			return []lockState{s}
		}
	case granted:
		return s.grants(q, a.token, w, a.asked)
	case unknownAnswer:
		return append(s.grants(q, 0, w, q.sent), s)
	default: // no answer to this question
	}
	return nil
}

// grants returns the states after a grant with this token, 0 for an unknown one. The lease begins
// at the time asked at the earliest.
func (s lockState) grants(q question, token locking.Token, w window, asked time.Duration) []lockState {
	var next []lockState
	if s.owner == q.owner && s.mayBeHeld(w) { // again: the same grant
		same := s.lasts(q, asked, w)
		if token == 0 || token == s.token {
			next = append(next, same)
		} else if s.token == 0 && token > s.most {
			same.token, same.most, same.came = token, token, w.to
			next = append(next, same)
		}
	}
	lapsed := s.mayBeFree(w) && s.lastBack != q.owner
	takenOver := q.token != 0 && s.mayBeHeld(w) && (s.token == q.token || s.token == 0)
	if (lapsed || takenOver) && (token == 0 || token > s.most) {
		n := s
		n.owner, n.token, n.most = q.owner, token, max(s.most, token)
		if !takenOver && s.owner != 0 {
			asked = max(asked, s.from) // not before the end of the lease before
		}
		n.before, n.came = s.most, w.to
		n = n.lasts(q, asked, w)
		if token == 0 && q.loose {
			n.from = asked // it may be withdrawn at once
		}
		next = append(next, n)
	}
	return next
}

func (s lockState) lasts(q question, asked time.Duration, w window) lockState {
	s.from = asked + q.ttl - grain
	s.to = forever
	if w.to < forever {
		s.to = w.to + q.ttl + q.late + grain
	}
	return s
}

func (s lockState) freed() lockState {
	s.owner, s.token, s.from, s.to, s.before, s.came = 0, 0, 0, 0, 0, 0
	return s
}

func (s lockState) afterRelease(q question, a answer, w window) []lockState {
	next := s.released(q, a, w)
	if q.loose && a.kind != done && s.lastBack != q.owner {
		s.lastBack = 0
		next = append(next, s.released(q, a, w)...)
	}
	return next
}

func (s lockState) released(q question, a answer, w window) []lockState {
	ours := s.owner == q.owner && s.mayBeHeld(w)
	given := s.freed()
	given.lastBack, given.unsure, given.back = q.owner, false, s.back|1<<q.owner
	var next []lockState
	switch a.kind {
	case done:
		if ours {
			next = append(next, given)
		}
		if s.back&(1<<q.owner) != 0 && s.owner != q.owner { // earlier
			next = append(next, s)
		}
	case notOurs:
		switch {
		case s.lastBack == q.owner:
		case s.owner != q.owner:
			next = append(next, s)
		case s.mayBeFree(w):
			next = append(next, s.freed())
		}
	case unknownAnswer:
		next = append(next, s)
		given.unsure = true
		if ours {
			next = append(next, given)
		}
	default: // no answer to this question
	}
	return next
}

func (s lockState) afterRenew(q question, a answer, w window) []lockState {
	ours := s.owner == q.owner && s.mayBeHeld(w) && (s.token == q.token || s.token == 0 && q.token > s.most)
	kept := s.lasts(q, q.sent, w)
	kept.token, kept.most = q.token, max(s.most, q.token)
	var next []lockState
	switch a.kind {
	case done:
		if ours {
			next = append(next, kept)
		}
	case notOurs:
		switch {
		case s.owner != q.owner || s.token != q.token:
			next = append(next, s)
		case s.mayBeFree(w):
			next = append(next, s.freed())
		}
	case unknownAnswer:
		next = append(next, s)
		if ours {
			if q.loose { // a minority of the masters may have renewed: they answer that the lock is held, the rest grant
				kept.from = s.from
			}
			next = append(next, kept)
		}
	default: // no answer to this question
	}
	return next
}

func (s lockState) afterOwner(q question, a answer, w window) []lockState {
	switch a.kind {
	case unknownAnswer:
		return []lockState{s}
	case free:
		if s.mayBeFree(w) {
			return []lockState{s.freed()}
		}
	case heldBy:
		if a.owner != s.owner || !s.mayBeHeld(w) {
			return nil
		}
		switch {
		case s.token == a.token:
			return []lockState{s}
		case q.loose && s.token == 0 && a.token > s.before:
			s.most = max(s.most, a.token-1) // the token of the grant is not smaller
			return []lockState{s}
		case q.loose && a.token > s.before && a.token < s.token && w.from <= s.came:
			return []lockState{s}
		case s.token == 0 && a.token > s.most:
			s.token, s.most = a.token, a.token
			return []lockState{s}
		}
	default: // no answer to this question
	}
	return nil
}
