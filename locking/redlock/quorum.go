package redlock

import (
	"time"

	"github.com/escapement/escapement/locking"
)

// The decisions are pure functions of the masters' answers. The simulation in the tests uses them too.

// majority is the size of a quorum of n masters: any two quorums share a master.
func majority(n int) int { return n/2 + 1 }

// chooseToken returns the token of an acquisition whose quorum made these promises. settled: a
// majority of n masters has promised this very token, so no second round is needed.
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

// validity is the rest of a lock's ttl when elapsed has passed since before the first request, less
// the drift of clocks that run at different rates (1 %) and the precision of expiry (2 ms).
func validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - ttl/100 - 2*time.Millisecond
}

// quarantine is how long the loss of a master's state must be known before the master votes: all its earlier
// locks have lapsed then. longest is the longest ttl of any client.
func quarantine(longest time.Duration) time.Duration {
	return longest + longest/10 + time.Second
}

// Codes of the scripts: 0 and less are "no". acquire.lua has more codes, see codeHeld.
const (
	codeYes        = 1
	codeOtherToken = 2
	codeRevoked    = 3
	codeLostState  = 4
)

// votes counts the answers of n masters to one request.
type votes struct {
	n       int
	yes, no int
	failed  int // no answer, an error, or a lost state
	other   int // to a renewal: the owner has the lock with another token
	revoked int // of no, to a renewal: the lock was revoked
}

func (v *votes) count(code int, err error) {
	switch {
	case err != nil, code == codeLostState:
		v.failed++
	case code == codeYes:
		v.yes++
	case code == codeOtherToken:
		v.other++
	case code == codeRevoked:
		v.revoked++
		v.no++
	default:
		v.no++
	}
}

// won: a majority answered yes. lost: a majority answered no. over: the other answers change nothing.
func (v votes) won() bool  { return v.yes >= majority(v.n) }
func (v votes) lost() bool { return v.no >= majority(v.n) }
func (v votes) over() bool { return v.won() || v.lost() || v.yes+v.no+v.failed+v.other == v.n }

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

// claim is a lock as one master holds it, or several do.
type claim struct {
	owner, holder string
	token         locking.Token // 0 in answers to Acquire
	left          time.Duration
	revoked       bool
	masters       int
}

// agreed joins the claims of the owner and token that most masters have.
func agreed(claims []claim) (most claim) {
	type grant struct {
		owner string
		token locking.Token
	}
	joined := make(map[grant]claim)
	for _, c := range claims {
		g := grant{c.owner, c.token}
		c.masters, c.left, c.revoked = joined[g].masters+1, max(c.left, joined[g].left), c.revoked || joined[g].revoked
		if joined[g] = c; c.masters > most.masters {
			most = c
		}
	}
	return most
}
