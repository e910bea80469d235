package redlock

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Codes of acquire.lua.
const (
	codeHeld      = 0
	codePromised  = 1
	codeReturned  = 2
	codeTooFar    = 3
	codeLostState = 4
)

// contenders is the Owner of a *locking.HeldError when a majority of the masters is held, but not by one owner:
// several ask at the same time, or one left a lock at a few masters.
const contenders = "several contenders"

// promise is one master's answer in phase 1.
type promise struct {
	master  int
	code    int64
	token   locking.Token // codePromised
	held    claim         // codeHeld
	empty   bool          // codeLostState: it is new, or was emptied
	runID   string
	largest locking.Token // of any lock there
	longest time.Duration // the longest ttl of any client
	lost    time.Duration // codeLostState: how long the loss has been known
}

// readPromise converts the reply of acquire.lua.
func readPromise(reply []any) (promise, error) {
	var p promise
	var text, who, largest string
	var left, longest, lost int64
	if !lockredis.Scan(reply, &p.code, &text, &left, &who, &p.runID, &largest, &longest, &lost) {
		return p, unexpected(reply)
	}
	p.longest, p.lost = ms(longest), ms(lost)
	var err error
	if p.largest, err = strconv.ParseInt(largest, 10, 64); err != nil {
		return p, fmt.Errorf("largest token %q: %w", largest, err)
	}
	switch p.code {
	case codePromised:
		if p.token, err = strconv.ParseInt(text, 10, 64); err != nil {
			return p, fmt.Errorf("token %q: %w", text, err)
		}
	case codeHeld:
		p.held = readClaim(text, who, left)
	case codeLostState:
		p.empty = text == "empty"
	case codeReturned, codeTooFar:
	default:
		return p, unexpected(reply)
	}
	return p, nil
}

func unexpected(reply []any) error {
	return fmt.Errorf("unexpected reply %v; check that nothing else writes to the lock's keys", reply)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// ballot counts the answers of phase 1.
type ballot struct {
	votes
	promises                    []promise
	claims                      []claim
	returned, tooFar, lostState int
	empty                       int      // of lostState: new, or emptied
	runIDs                      []string // by master; "" without an answer
	answered                    []bool   // by master; also for an error
	errs                        []error
}

// take counts one answer, and reports whether the outcome is known.
func (b *ballot) take(a answer[promise]) bool {
	if b.runIDs == nil {
		b.runIDs = make([]string, b.n)
	}
	if b.answered == nil {
		b.answered = make([]bool, b.n)
	}
	p := a.value
	p.master = a.master
	b.runIDs[a.master], b.answered[a.master] = p.runID, true
	switch {
	case a.err != nil:
		b.failed++
		b.errs = append(b.errs, a.err)
	case p.code == codePromised:
		b.yes++
		b.promises = append(b.promises, p)
	case p.code == codeLostState:
		b.failed++
		b.lostState++
		if p.empty {
			b.empty++
		}
	default:
		b.no++
		b.count(p)
	}
	_, most := strongest(b.claims)
	return b.won() || most >= majority(b.n)
}

func (b *ballot) count(p promise) {
	switch p.code {
	case codeHeld:
		b.claims = append(b.claims, p.held)
	case codeReturned:
		b.returned++
	case codeTooFar:
		b.tooFar++
	}
}

func (b *ballot) tokens() []locking.Token {
	out := make([]locking.Token, 0, len(b.promises))
	for _, p := range b.promises {
		out = append(out, p.token)
	}
	return out
}

// heldError returns who holds the lock at a majority. Until is the time until a majority is free, if nobody
// renews.
func (b *ballot) heldError(name string) *locking.HeldError {
	held := &locking.HeldError{Name: name, Owner: contenders, Until: untilFree(b.n, b.pending()+b.failed, b.claims)}
	if who, count := strongest(b.claims); count >= majority(b.n) {
		held.Owner, held.Holder = who.owner, who.holder
	}
	return held
}

// untilFree returns the time until fewer than a majority of n masters hold a claim. Unknown masters count as
// held for longer than all others.
func untilFree(n, unknown int, claims []claim) time.Duration {
	left := make([]time.Duration, 0, n)
	for _, c := range claims {
		left = append(left, c.left)
	}
	slices.Sort(left)
	slices.Reverse(left)
	at := max(majority(n)-1-unknown, 0)
	if at >= len(left) {
		return 0
	}
	return left[at]
}
