package locktest

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
)

type questionKind uint8

const (
	askAcquire questionKind = iota
	askRelease
	askRenew
	askOwner
)

// question is one call's request. Owners are numbers here, for a small state.
type question struct {
	kind  questionKind
	owner int
	token locking.Token // acquire: to be taken over, 0 none; renew: the grant's
	ttl   time.Duration
	sent  time.Duration // since the start
	late  time.Duration // see Store.Late
	loose bool          // of a quorum, see Store.Quorum
	write bool          // acquire: of a read-write lock, the whole of it
}

func (q question) String() string {
	what := [...]string{"acquire", "release", "renew", "owner"}[q.kind]
	if q.kind == askOwner {
		return what
	}
	return fmt.Sprintf("%s for %d, token %d", what, q.owner, q.token)
}

type answerKind uint8

const (
	unknownAnswer answerKind = iota // it may have taken effect
	granted
	heldBy
	done    // released, renewed
	notOurs // lost, gone
	free
)

// answer is the answer of one call.
type answer struct {
	kind  answerKind
	owner int
	token locking.Token
	asked time.Duration // Grant.Asked, since the start
	came  time.Duration // since the start
}

func (a answer) String() string {
	what := [...]string{"no answer", "granted", "held", "done", "not ours", "free"}[a.kind]
	return fmt.Sprintf("%s (owner %d, token %d)", what, a.owner, a.token)
}
