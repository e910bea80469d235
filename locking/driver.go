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
	Delay time.Duration // after a lapse, the store keeps the lock for this much longer; Release ends the delay
	// First is how long the lease lasts until its first renewal, which comes after a fifth of it. 0: TTL.
	First time.Duration
	Fixed bool // not renewed: the lease ends after TTL, unless Lease.Extend is called

	// A reading of time.Now, with its monotonic part, from before the first request was sent. The
	// store counts TTL, or First, from a later moment, so the lease at the store ends after this
	// time plus TTL.
	Asked time.Time

	// Slept is the result of the function Slept, read at the same moment. 0: not read; a suspension
	// before Hold is then not counted.
	Slept time.Duration
}

// Renewal is a request to keep one grant for another TTL, from now.
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
	// Revoked means that Revoke was called for this grant; the lease ends as with Gone. A driver
	// that cannot distinguish the two answers returns Gone.
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
	// Renew answers each renewal of the batch, in order. The error is the reason of the Unknown
	// answers; when Renew returns no answers, each of them is Unknown. Renew must return when ctx
	// ends.
	Renew(ctx context.Context, batch []Renewal) ([]RenewAnswer, error)
}

// Request is a request for a lock.
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

	// Queue requests a place in the lock's queue when the lock is held. Each further request keeps
	// the place; the place ends with Release, or after QueueTimeout without a request. A store
	// without queues ignores Queue.
	Queue bool
}

// Ownership describes the holder of a lock. A free lock has an empty Owner.
type Ownership struct {
	Name    string
	Owner   string        // the owner value of the acquisition
	Holder  string        // Options.Holder of the acquisition
	Token   Token         // of the grant
	Left    time.Duration // until another owner can have the lock, unless the lease is renewed
	Revoked bool          // Revoke was called for this grant
	Waiters int           // length of the queue
	Share   Share         // of a semaphore or a read-write lock; the zero value of a lock
}

// Held reports whether the lock has a holder.
func (o Ownership) Held() bool { return o.Owner != "" }

// Driver makes the calls to a store. Package locktest tests an implementation. All methods may be
// called from many goroutines. When a driver's calls leave work in the background, it has a method
// Wait(), which Locker.Close calls last.
type Driver interface {
	Renewer

	// Acquire takes a lock. The error is a *HeldError when another owner holds it, and wraps
	// ErrUnreachable when the outcome is unknown. A repeated request of the same owner returns the
	// same token, and a Grant.Asked from before the request that was granted.
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Release gives back the lock, or the owner's place in its queue. It returns nil when this owner
	// released the lock, now or in an earlier call. The error wraps ErrLost when this owner does not hold
	// it.
	Release(ctx context.Context, name, owner string) error

	// Owner returns the holder of the lock called name.
	Owner(ctx context.Context, name string) (Ownership, error)

	// Revoke makes the next renewal of the grant with this token answer Revoked, or Gone. The lock stays
	// held until its owner releases it or it lapses, so that the holder can end its work first. The error
	// wraps ErrLost when that grant does not hold the lock.
	Revoke(ctx context.Context, name string, token Token) error
}

// Notifier is a driver whose store has queues and notifies waiters.
type Notifier interface {
	// Listen returns a channel that gets a value when owner should send another request for the
	// lock called name, and a function that ends the notifications. Listen does not call the store.
	Listen(name, owner string) (notified <-chan struct{}, stop func())

	// Close closes the connection for notifications, and returns when it is closed. The next waiter
	// opens it again.
	Close()
}
