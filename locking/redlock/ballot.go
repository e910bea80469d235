package redlock

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Codes of acquire.lua, which says what they mean.
const (
	codeHeld     = 0
	codePromised = 1
	codeReturned = 2
	codeTooFar   = 3
	codeAmnesiac = 4
)

// Contenders is the Owner of a *locking.HeldError when a majority of the masters
// is held, and no majority by one and the same: some ask at the same time, or one
// holds the lock and another has left something behind. Nobody can tell who will
// have it.
const Contenders = "several contenders"

// promise is one master's answer in phase 1, whatever it was.
type promise struct {
	master  int
	code    int64
	token   locking.Token // codePromised
	held    claim         // codeHeld
	empty   bool          // codeAmnesiac: there is no trace of an earlier life
	runID   string
	largest locking.Token // of any lock there
	longest time.Duration // that any client may ask for
	lost    time.Duration // codeAmnesiac: how long that has been known
}

// readPromise reads the reply of acquire.lua.
func readPromise(reply []any) (promise, error) {
	var p promise
	var text, who, largest string
	var left, longest, lost int64
	if !lockredis.Scan(reply, &p.code, &text, &left, &who, &p.runID, &largest, &longest, &lost) {
		return p, fmt.Errorf("unexpected reply %v; is a key of this lock used by something else?", reply)
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
	case codeAmnesiac:
		p.empty = text == "empty"
	case codeReturned, codeTooFar:
	default:
		return p, fmt.Errorf("unexpected code %d", p.code)
	}
	return p, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// ballot is what the masters answered in phase 1.
type ballot struct {
	votes
	promises                   []promise
	claims                     []claim
	returned, tooFar, amnesiac int
	empty                      int      // of the amnesiac: new, or emptied
	runIDs                     []string // of those that answered, by master; "" for the rest
	heard                      []bool   // by master: it has answered, or failed
	errs                       []error
}

// take counts one answer, and reports whether the outcome is known.
func (b *ballot) take(a answer[promise]) bool {
	if b.runIDs == nil {
		b.runIDs = make([]string, b.n)
	}
	if b.heard == nil {
		b.heard = make([]bool, b.n)
	}
	p := a.value
	p.master = a.master
	b.runIDs[a.master], b.heard[a.master] = p.runID, true
	switch {
	case a.err != nil:
		b.failed++
		b.errs = append(b.errs, a.err)
	case p.code == codePromised:
		b.yes++
		b.promises = append(b.promises, p)
	case p.code == codeAmnesiac:
		b.failed++
		b.amnesiac++
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

// heldError says who holds the lock at a majority. Until is when a majority will
// be free, if nobody renews.
func (b *ballot) heldError(name string) *locking.HeldError {
	held := &locking.HeldError{Name: name, Owner: Contenders, Until: untilFree(b.n, b.pending()+b.failed, b.claims)}
	if who, count := strongest(b.claims); count >= majority(b.n) {
		held.Owner, held.Holder = who.owner, who.holder
	}
	return held
}

// untilFree is the time until fewer than a majority of n masters are claimed.
// Of those that are not known, the longest is assumed.
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
