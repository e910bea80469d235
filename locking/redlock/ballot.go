package redlock

import (
	"fmt"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Codes of acquire.lua, besides codeLostState.
const (
	codeHeld     = 0
	codePromised = codeYes
	codeReturned = 2
	codeTooFar   = 3
)

// contenders is the Owner of a *locking.HeldError when a majority of the masters is held, but not
// by one owner: several owners contend at the same time, or an owner left a lock at a few masters.
const contenders = "several contenders"

// promise is one master's answer to Acquire.
type promise struct {
	code  int64
	token locking.Token // codePromised
	held  claim         // codeHeld
	runID string
}

// readPromise converts the reply of acquire.lua.
func readPromise(reply []any) (p promise, err error) {
	var left int64
	if !lockredis.Scan(reply, &p.code, &p.token, &p.held.owner, &left, &p.held.holder, &p.runID) || p.code < codeHeld || p.code > codeLostState {
		return p, unexpected(reply)
	}
	p.held.left = lockredis.Left(left)
	return p, nil
}

func unexpected(reply []any) error {
	return fmt.Errorf("unexpected reply %v; check that nothing else writes to the lock's keys", reply)
}

// ballot counts the answers to a request for promises.
type ballot struct {
	n        int
	of       [codeLostState + 1]int // masters by the code of their answers
	promised []*master
	tokens   []locking.Token // of the promises
	claims   []claim
	errs     []error
	runIDs   []string // by master; "" without an answer
}

func newBallot(n int) ballot { return ballot{n: n, runIDs: make([]string, n)} }

// take counts the answer of one master, and reports whether the outcome is known.
func (b *ballot) take(a answer[promise]) bool {
	if a.err != nil {
		b.errs = append(b.errs, a.err)
		return false
	}
	b.runIDs[a.master.index] = a.value.runID
	b.of[a.value.code]++
	switch a.value.code {
	case codePromised:
		b.promised, b.tokens = append(b.promised, a.master), append(b.tokens, a.value.token)
	case codeHeld:
		b.claims = append(b.claims, a.value.held)
	}
	return b.won() || agreed(b.claims).masters >= majority(b.n)
}

func (b *ballot) won() bool { return b.of[codePromised] >= majority(b.n) }

// refused is the number of masters that have voted for no.
func (b *ballot) refused() int { return b.of[codeHeld] + b.of[codeReturned] + b.of[codeTooFar] }

// heldError returns an error with the holder of the lock at a majority of the masters. Until is the
// time until these locks lapse, if they are not renewed.
func (b *ballot) heldError(name string) *locking.HeldError {
	if c := agreed(b.claims); c.masters >= majority(b.n) {
		return &locking.HeldError{Name: name, Owner: c.owner, Holder: c.holder, Until: c.left}
	}
	return &locking.HeldError{Name: name, Owner: contenders}
}
