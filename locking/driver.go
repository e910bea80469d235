package locking

import (
	"context"
	"fmt"
	"time"
)

// Token is a fencing token: of two grants of one lock, the later one has the larger token. It is positive
// and below 2^53, so that Lua and JSON carry it exactly. It is an alias, so that jobs.Run can return the
// same number without a conversion.
type Token = int64

// Grant is a lease as the store has granted it.
type Grant struct {
	Name  string
	Owner string // unique per acquisition
	Token Token
	TTL   time.Duration // how long the lease lasts without a renewal
	Delay time.Duration // how much longer than TTL the store keeps the lock from others; Release ends the delay
	// First is how long the lease lasts until its first renewal, which comes after a fifth of it. 0: TTL.
	First time.Duration
	Fixed bool // not renewed: the lease ends after TTL, unless Lease.Extend is called

	// Asked is a reading of time.Now, with its monotonic part, from before the first request was sent. The
	// store counts TTL, or First, from a later moment, so the lease ends there after Asked + TTL.
	Asked time.Time

	// Slept is the result of Slept, read together with Asked. 0: not read; then a suspension between Asked
	// and Hold is not counted.
	Slept time.Duration
}

// Renewal asks the store to keep one grant for another TTL, from now.
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
	// Unknown means that there is no answer. The renewal is retried until the deadline.
	Unknown RenewAnswer = iota
	// Renewed means that the lease lasts its TTL, counted from after the request was sent.
	Renewed
	// Gone means that this grant does not hold the lock any more. This is final.
	Gone
	// Revoked means that Revoke was called for this grant; the lease ends as with Gone. A driver that
	// cannot tell the two apart answers Gone.
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

// Renewer renews grants in a store.
type Renewer interface {
	// Renew answers each renewal of the batch, in order. The error is the reason for those that are
	// Unknown; without answers, all are. Renew must return when ctx ends.
	Renew(ctx context.Context, batch []Renewal) ([]RenewAnswer, error)
}

// Request asks a store for a lock.
type Request struct {
	Name   string
	Owner  string        // unique per acquisition
	Holder string        // Options.Holder; may be empty
	TTL    time.Duration // see Grant.TTL
	Delay  time.Duration // see Grant.Delay

	// After is a token that a guard has accepted: the granted one is larger. 0: none.
	After Token

	// From is the token of the grant to take the lock from. 0: none, a held lock stays held.
	From Token

	// Queue asks for a place in the lock's queue when the lock is held. Each further request keeps the
	// place; Release gives it up, and so does not asking for QueueTimeout. A store without queues ignores
	// it.
	Queue bool
}

// Ownership describes who holds a lock. With an empty Owner nobody does.
type Ownership struct {
	Name    string
	Owner   string        // the owner value of the acquisition
	Holder  string        // Options.Holder of the acquisition
	Token   Token         // of the grant
	Left    time.Duration // until others can have the lock, unless it is renewed
	Revoked bool          // Revoke was called for this grant
	Waiters int           // length of the queue
	Share   Share         // of a semaphore or a read-write lock; the zero value of a lock
}

// Held reports whether somebody holds the lock.
func (o Ownership) Held() bool { return o.Owner != "" }

// Driver is what a store must be able to do. Package locktest tests an implementation. All methods may
// be called from many goroutines. When a driver's calls leave work in the background, it has a method
// Wait(), which Locker.Close calls last.
type Driver interface {
	Renewer

	// Acquire takes a lock. The error is a *HeldError when another owner holds it, and wraps ErrUnreachable
	// when the outcome is unknown. A repeated request of the same owner returns the same token, and an
	// Asked from which TTL ends before the lease does at the store, whichever request was granted.
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Release gives back the lock, or the owner's place in its queue. It returns nil when this owner
	// released the lock, now or in an earlier call. The error wraps ErrLost when this owner does not hold
	// it.
	Release(ctx context.Context, name, owner string) error

	// Owner returns who holds the lock called name.
	Owner(ctx context.Context, name string) (Ownership, error)

	// Revoke makes the next renewal of the grant with this token answer Revoked, or Gone. The lock stays
	// held until its owner releases it or it lapses, so that the holder can end its work first. The error
	// wraps ErrLost when that grant does not hold the lock.
	Revoke(ctx context.Context, name string, token Token) error
}

// Notifier is a driver whose store has queues and notifies waiters.
type Notifier interface {
	// Listen returns a channel that gets a value when owner should ask for the lock called name again, and
	// a function that ends this. It does not call the store.
	Listen(name, owner string) (notified <-chan struct{}, stop func())

	// Close closes the connection for notifications, and waits for that. The next waiter opens it again.
	Close()
}
