package redlock

import (
	"time"

	"github.com/escapement/escapement/locking"
)

// The decisions are pure functions of the masters' answers. The simulation in the tests uses them too.

// majority is the size of a quorum of n masters: any two quorums share a master.
func majority(n int) int { return n/2 + 1 }

// chooseToken returns the token of an acquisition whose quorum made these promises. settled: a majority of n
// masters has promised this very token, so phase 2 would change nothing.
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

// validity is what remains of a lock's ttl when elapsed has passed since before the first request, less the
// drift of clocks that run at different rates (1 %) and the precision of expiry (2 ms).
func validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - ttl/100 - 2*time.Millisecond
}

// quarantine is how long the loss of a master's state must be known before the master votes: all its earlier
// locks have lapsed then. longest is the longest ttl of any client.
func quarantine(longest time.Duration) time.Duration {
	return longest + longest/10 + time.Second
}

// votes counts what n masters answered to one request.
type votes struct {
	n       int
	yes, no int
	failed  int // no answer, an error, or a lost state
	other   int // to a renewal: the owner has the lock with another token
	revoked int // of no, to a renewal: the lock was revoked
}

// pending is the number of masters that have not answered.
func (v votes) pending() int { return v.n - v.yes - v.no - v.failed - v.other }

// won: a majority answered yes. lost: a majority answered no. over: the other answers change nothing.
func (v votes) won() bool  { return v.yes >= majority(v.n) }
func (v votes) lost() bool { return v.no >= majority(v.n) }
func (v votes) over() bool { return v.won() || v.lost() || v.pending() == 0 }

// renewal returns the answer for one lock. A master with another token may have promised it when the lock was
// granted, so the lock is gone only when a majority has another token.
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

// claim is a lock as one master holds it.
type claim struct {
	owner, holder string
	token         locking.Token
	left          time.Duration
	revoked       bool
}

// strongest returns a claim of the owner with the most claims, and their number, 0 without claims. Of two
// owners it prefers the larger token, and then the longer life, so that all callers choose the same.
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
