package redlock

import (
	"time"

	"github.com/escapement/escapement/locking"
)

// The decisions, as pure functions of what masters answered. The driver makes
// them, and so does the simulation in the tests.

// majority is how many of n masters make a quorum: any two of them share one.
func majority(n int) int { return n/2 + 1 }

// chooseToken returns the token of an acquisition whose quorum promised these,
// and whether a majority of n masters has promised exactly that: then each of
// them stores it already, under this owner's lock, and phase 2 would change
// nothing.
func chooseToken(n int, promised []locking.Token) (t locking.Token, settled bool) {
	same := 0
	for _, p := range promised {
		switch {
		case p > t:
			t, same = p, 1
		case p == t:
			same++
		}
	}
	return t, same >= majority(n)
}

// validity is what is left of a lock's ttl when elapsed has passed since the
// first request for it was sent, less the drift of clocks that run at different
// rates: one in a hundred, and 2 ms for the precision of expiry.
func validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - ttl/100 - 2*time.Millisecond
}

// quarantine is for how long a master that has lost its state must have been
// known before it may vote: all locks that it may have promised before are over
// then. longest is the longest ttl that anybody may ask for.
func quarantine(longest time.Duration) time.Duration {
	return longest + longest/10 + time.Second
}

// votes counts what n masters answered to one request.
type votes struct {
	n       int
	yes, no int
	failed  int // no answer, or one that says nothing: an error, an amnesiac
	other   int // a renewal: the owner has it with another token
	revoked int // of no, to a renewal: the owner is asked to end
}

// pending is how many have not answered.
func (v votes) pending() int { return v.n - v.yes - v.no - v.failed - v.other }

// won: a majority says yes. lost: a majority says no. over: all have answered,
// or the rest can change nothing.
func (v votes) won() bool  { return v.yes >= majority(v.n) }
func (v votes) lost() bool { return v.no >= majority(v.n) }
func (v votes) over() bool { return v.won() || v.lost() || v.pending() == 0 }

// renewal is the answer for one lock that follows from the votes of masters. One
// that has it with another token may have promised that when the lock was granted:
// it does not say that the lock is gone, until a majority says the same.
func (v votes) renewal(ttl, elapsed time.Duration) locking.RenewAnswer {
	switch {
	case v.won() && validity(ttl, elapsed) > 0:
		return locking.Renewed
	case v.lost() && v.revoked > 0:
		return locking.Revoked
	case v.lost(), v.other >= majority(v.n):
		return locking.Gone
	}
	return locking.Unknown
}

// claim is somebody's lock at one master.
type claim struct {
	owner, holder string
	token         locking.Token
	left          time.Duration
	revoked       bool
}

// strongest returns the owner with the most claims; of two the one with the
// larger token, and then the one whose claims last longer, so that all who look
// at the same claims see the same. count 0: there is none.
func strongest(claims []claim) (best claim, count int) {
	counts := make(map[string]int)
	for _, c := range claims {
		counts[c.owner]++
	}
	for _, c := range claims {
		n := counts[c.owner]
		switch {
		case n < count:
		case n > count, c.token > best.token, c.token == best.token && c.left > best.left:
			best, count = c, n
		}
	}
	return best, count
}
