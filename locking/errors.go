package locking

import (
	"errors"
	"fmt"
	"time"
)

// The three answers that must never be mistaken for each other are ErrHeld
// (somebody has it), ErrUnreachable (nobody knows) and ErrLost (it was ours
// and is not any more).
var (
	// ErrHeld is returned when somebody else holds the lock. The error is a
	// *HeldError, which says who and for how long at least.
	ErrHeld = errors.New("held by another")

	// ErrUnreachable is returned when the store gave no usable answer: whether
	// the request took effect is not known. Asking again with the same owner
	// is safe.
	ErrUnreachable = errors.New("store unreachable")

	// ErrLost is returned by a release when the lock was not ours any more:
	// it had lapsed, or somebody else holds it.
	ErrLost = errors.New("not held any more")

	// ErrNotReleased stands beside the store's answer in an error of Do: the function
	// was called and has returned, and its lock could not be given back then, or was
	// lost before. An ErrHeld or ErrUnreachable without it is what came of asking for the lock, or
	// the function's own.
	ErrNotReleased = errors.New("the function has run")

	// ErrLeaseLost is the cause of a lease's context when the lease could not
	// be renewed before its local deadline, or the store said that it is gone.
	// The cause wraps it and adds the name and the reason.
	ErrLeaseLost = errors.New("lease lost")

	// ErrReleased is the cause of a lease's context after Close or Release: an
	// end, not a failure.
	ErrReleased = errors.New("lease released")
)

// HeldError says who holds a lock that could not be had. It matches ErrHeld.
type HeldError struct {
	Name   string        // the lock's name
	Owner  string        // the owner value of whoever holds it
	Holder string        // who that is, for people; may be empty
	Until  time.Duration // time until others can have it, Delay included, unless it is renewed; 0: not known
	Place  int           // our place in the line, 1 being next; 0: we do not stand in one
	Waited time.Duration // how long Acquire waited for it
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

// InputError says which argument of a call was refused, before anything was
// sent.
type InputError struct {
	Lock  string // the lock's name, shortened when that is the trouble; may be empty
	Field string // what was refused: "name", "Options.TTL", "masters", ...
	Why   string // what is wrong with it, the limit, and what to do
}

// Error names the lock, the field and the limit.
func (e *InputError) Error() string {
	if e.Lock == "" {
		return fmt.Sprintf("lock: %s %s", e.Field, e.Why)
	}
	return fmt.Sprintf("lock %q: %s %s", e.Lock, e.Field, e.Why)
}

// named puts the lock's name in front of a driver's error, which says what was
// done and where, unless it says the name itself.
func named(name string, err error) error {
	var input *InputError
	if errors.Is(err, ErrHeld) || errors.As(err, &input) && input.Lock != "" {
		return err
	}
	return fmt.Errorf("lock %q: %w", name, err)
}

// lastAnswer is an answer to acquire inside an error that names the lock and
// needs no advice.
type lastAnswer struct{ error }

func (a lastAnswer) Error() string {
	var held *HeldError
	if errors.As(a.error, &held) {
		return fmt.Sprintf("%v (%s)", ErrHeld, held.by())
	}
	return a.error.Error()
}

func (a lastAnswer) Unwrap() error { return a.error }
