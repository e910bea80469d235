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
	TTL   time.Duration // how long the store keeps it without a renewal

	// Asked is a reading of time.Now from before the first request was sent,
	// with its monotonic part. The store counts TTL from a later moment, so
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
	}
	return fmt.Sprintf("RenewAnswer(%d)", uint8(a))
}

// Renewer keeps grants alive in a store.
type Renewer interface {
	// Renew answers each renewal of the batch, in order. An error means that
	// nothing is known about the whole batch. It must return when ctx ends.
	Renew(ctx context.Context, batch []Renewal) ([]RenewAnswer, error)
}

// Driver is what a store must be able to do; locktest proves that it can.
// All methods may be called from many goroutines.
type Driver interface {
	Renewer

	// Acquire takes the lock called name for owner, or returns a *HeldError, or
	// an error that wraps ErrUnreachable when the outcome is not known. Asked
	// again by the same owner it returns the same token, with Asked moved back
	// so that Asked + TTL stays before the end of the lease.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Grant, error)

	// Release gives the lock back. It returns nil when this owner gave it
	// back, now or in an earlier call, and an error that wraps ErrLost when it
	// was not ours any more.
	Release(ctx context.Context, name, owner string) error
}
