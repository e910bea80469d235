package locking

import (
	"errors"
	"fmt"
	"time"
)

// Three answers must never be mistaken for each other: ErrHeld (another holder has the lock),
// ErrUnreachable (the outcome is unknown) and ErrLost (this holder has it no more).
var (
	// ErrHeld is returned when another holder has the lock. The error is a *HeldError, with the holder and
	// the time left.
	ErrHeld = errors.New("held by another")

	// ErrUnreachable is returned when the store gave no usable answer. The request may have taken effect; to
	// repeat it with the same owner is safe.
	ErrUnreachable = errors.New("store unreachable")

	// ErrLost is returned when this grant does not hold the lock any more: it has lapsed, was revoked, or
	// another holder has the lock.
	ErrLost = errors.New("not held any more")

	// ErrNotReleased is returned by Do when f ran but the lock could not be released, or was lost before. Do
	// not run f again. Without it, ErrHeld or ErrUnreachable mean that f has not run (or are f's own).
	ErrNotReleased = errors.New("the function has run")

	// ErrLeaseLost is the cause of a lease's context when the lease was not renewed before its local
	// deadline, or the store answered that it is gone. The cause adds the name, the token and the reason.
	ErrLeaseLost = errors.New("lease lost")

	// ErrReleased is the cause of a lease's context after Close or Release: an end, not a failure.
	ErrReleased = errors.New("lease released")
)

// HeldError describes the holder of a lock that could not be acquired; of several holders, the one
// whose lease lapses first. It matches ErrHeld.
type HeldError struct {
	Name   string        // of the lock
	Owner  string        // the owner value of the holder's acquisition
	Holder string        // the holder's Options.Holder; may be empty
	Until  time.Duration // until another owner can have the lock, Delay included, unless the lease is renewed; 0: not known
	Place  int           // the caller's place in the queue, 1 being next; 0: no place
	Waited time.Duration // how long Acquire has waited
}

// Error names the lock, its holder and the time left, if that is known.
func (e *HeldError) Error() string {
	if e.Waited > 0 {
		return fmt.Sprintf("lock %q: still %v after waiting %s (%s); wait longer with Options.Wait, or try later",
			e.Name, ErrHeld, e.Waited, e.by())
	}
	return fmt.Sprintf("lock %q: %v (%s); wait for it with Options.Wait or try later", e.Name, ErrHeld, e.by())
}

func (e *HeldError) by() string {
	text := e.Owner
	if e.Holder != "" {
		text = e.Holder + ", " + e.Owner
	}
	if e.Until > 0 {
		text += fmt.Sprintf(", %s left", e.Until)
	}
	return text
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// InputError is an argument of a call that was refused before anything was sent.
type InputError struct {
	Lock  string // the lock's name, shortened if too long; may be empty
	Field string // the argument: "name", "Options.TTL", "masters", ...
	Why   string // the fault of the value, the limit, and the cure
}

// Error names the lock, the field and the limit.
func (e *InputError) Error() string {
	if e.Lock == "" {
		return fmt.Sprintf("lock: %s %s", e.Field, e.Why)
	}
	return fmt.Sprintf("lock %q: %s %s", e.Lock, e.Field, e.Why)
}

// named puts the lock's name in front of a driver's error, unless the error has it.
func named(name string, err error) error {
	var input *InputError
	if errors.Is(err, ErrHeld) || errors.As(err, &input) && input.Lock != "" {
		return err
	}
	return fmt.Errorf("lock %q: %w", name, err)
}

// lastAnswer is an answer to acquire, inside an error that has the lock's name and the advice.
type lastAnswer struct{ error }

func (a lastAnswer) Error() string {
	var held *HeldError
	if errors.As(a.error, &held) {
		return fmt.Sprintf("%v (%s)", ErrHeld, held.by())
	}
	return a.error.Error()
}

func (a lastAnswer) Unwrap() error { return a.error }
