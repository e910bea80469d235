package locking

import (
	"context"
	"fmt"
	"time"
)

// Token is a fencing token: of two grants of one lock, the later has the
// larger token. It is positive and below 2^53, so that Lua and JSON carry it
// exactly. An alias on purpose: a jobs.Run hands out the same number without
// conversion.
type Token = int64

// Grant is a store's answer "it is yours".
type Grant struct {
	Name  string
	Owner string // unique per acquisition
	Token Token
	TTL   time.Duration // how long it lasts for its holder without a renewal
	Delay time.Duration // how much longer than TTL the store keeps it from others; Release ends it at once
	// First is how long it lasts until it was renewed for the first time; 0: as long as TTL. A shorter one is renewed after a fifth
	// of it.
	First time.Duration
	Fixed bool // it is not renewed: it ends after TTL, unless Lease.Extend is called

	// Asked is a reading of time.Now from before the first request was sent,
	// with its monotonic part. The store counts TTL, or First, from a later moment, so
	// Asked + TTL is never after the store's own end of the lease.
	Asked time.Time

	// Slept is what Slept returned together with Asked. Zero means that it was
	// not read; then a suspension between Asked and Hold goes unnoticed.
	Slept time.Duration
}

// Renewal asks to keep one grant for another TTL from now.
type Renewal struct {
	Name  string
	Owner string
	Token Token
	TTL   time.Duration
	Delay time.Duration // see Grant.Delay
}

// RenewAnswer is a store's answer to one Renewal.
type RenewAnswer uint8

const (
	// Unknown: no answer for this one; it is tried again until its deadline.
	Unknown RenewAnswer = iota
	// Renewed: the lease now lasts its TTL, counted from after the request was sent.
	Renewed
	// Gone: the lease is not ours any more. This is final.
	Gone
	// Revoked: as Gone, and because somebody called Revoke. A driver that cannot tell answers Gone.
	Revoked
)

// String returns the answer as a lower-case word.
func (a RenewAnswer) String() string {
	switch a {
	case Unknown:
		return "unknown"
	case Renewed:
		return "renewed"
	case Gone:
		return "gone"
	case Revoked:
		return "revoked"
	}
	return fmt.Sprintf("RenewAnswer(%d)", uint8(a))
}

// Renewer keeps grants alive in a store.
type Renewer interface {
	// Renew answers each renewal of the batch, in order. An error says why those
	// are Unknown that are; when it comes alone, all are. It must return when ctx ends.
	Renew(ctx context.Context, batch []Renewal) ([]RenewAnswer, error)
}

// Request asks a store for a lock.
type Request struct {
	Name   string
	Owner  string        // unique per acquisition
	Holder string        // who that is, for people; may be empty
	TTL    time.Duration // see Grant.TTL
	Delay  time.Duration // see Grant.Delay

	// After is a token that a guard has seen: the one granted is larger. 0: none.
	After Token

	// From is the token of the grant to be taken away from its holder; 0 takes
	// nothing away.
	From Token

	// Queue asks for a place in the lock's line when it is held. A driver whose
	// store has no lines ignores it. Asked again, the place is kept; it is lost
	// by Release, and by not asking for a few seconds.
	Queue bool
}

// Ownership says who holds a lock. The zero Owner says that nobody does.
type Ownership struct {
	Name    string
	Owner   string        // the owner value of the acquisition
	Holder  string        // who that is, for people, as the holder said
	Token   Token         // the grant's
	Left    time.Duration // until others can have it, unless it is renewed
	Revoked bool          // its holder has been asked to end
	Waiters int           // how many stand in line
}

// Held reports whether somebody holds the lock.
func (o Ownership) Held() bool { return o.Owner != "" }

// Driver is what a store must be able to do; locktest proves that it can.
// All methods may be called from many goroutines.
type Driver interface {
	Renewer

	// Acquire takes a lock, or returns a *HeldError, or an error that wraps
	// ErrUnreachable when the outcome is not known. Asked again by the same owner
	// it returns the same token; Asked + TTL is before the end of the lease at
	// the store, whichever call was granted.
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Release gives the lock back, or the owner's place in its line. It returns
	// nil when this owner gave the lock back, now or in an earlier call, and an
	// error that wraps ErrLost when it was not ours any more.
	Release(ctx context.Context, name, owner string) error

	// Owner says who holds the lock called name.
	Owner(ctx context.Context, name string) (Ownership, error)

	// Revoke makes the next renewal of the grant with this token answer Revoked, or Gone. The
	// lock is kept until its owner releases it or it lapses: so its holder hears of
	// it first, and may bring its work to an end. A fixed lease ends when it would
	// anyway. It returns an error that wraps ErrLost when that grant
	// does not hold the lock.
	Revoke(ctx context.Context, name string, token Token) error
}

// Waker is a driver whose store calls those who wait in line.
type Waker interface {
	// Listen returns a channel that gets a value when it is worth asking for
	// owner again, and a function that ends that. It does not talk to the store.
	Listen(name, owner string) (called <-chan struct{}, stop func())

	// Close closes what the calls come over, and waits for it. It is opened
	// again when somebody waits.
	Close()
}
