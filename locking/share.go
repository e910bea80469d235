package locking

import (
	"context"
	"errors"
	"fmt"
)

// MaxPermits is the largest number of permits of a semaphore, and of readers that hold a read-write lock at once.
const MaxPermits = 1000

// Mode is how an acquisition shares a name. All contenders of a read-write lock use Read or Write.
type Mode uint8

const (
	// Exclusive is for a lock, and for a semaphore with Options.Permits.
	Exclusive Mode = iota
	// Read shares a read-write lock with other readers.
	Read
	// Write has a read-write lock alone.
	Write
)

// String returns the mode as a lower-case word.
func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Read:
		return "read"
	case Write:
		return "write"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Share is the subject of an acquisition: one permit of a semaphore, or a part in a read-write
// lock. The zero value is a lock.
type Share struct {
	Permits int  // of the semaphore; 0 or 1: none
	Mode    Mode // Exclusive with Permits
}

// isLock reports whether a plain Driver can grant it.
func (s Share) isLock() bool { return s.Permits <= 1 && s.Mode == Exclusive }

// String describes the share: "a lock", "a permit of 3", "a reader".
func (s Share) String() string {
	switch {
	case s.Mode == Read:
		return "a reader"
	case s.Mode == Write:
		return "a writer"
	case s.isLock():
		return "a lock"
	}
	return fmt.Sprintf("a permit of %d", s.Permits)
}

// isAlone reports whether the holder of s is the only one.
func (s Share) isAlone() bool { return s.isLock() || s.Mode == Write }

// covers reports whether a holder of s has all that the share asked promises: no other holder, no
// writer, or at most so many other holders.
func (s Share) covers(asked Share) bool {
	switch {
	case s.isAlone():
		return true
	case asked.isAlone() || s.Mode != asked.Mode:
		return false
	}
	return s.Permits <= asked.Permits // readers have none
}

// Sharer is a driver whose store has semaphores and read-write locks.
type Sharer interface {
	// Share returns the driver that acquires, renews and releases s, at the same store. Share may
	// be called for each acquisition. The result's Renew and Release do not depend on s. The
	// result's Acquire returns an *InputError for Options.Permits or Options.Mode while the name
	// has a holder or a waiter of another kind; so does the Sharer's own Acquire.
	Share(s Share) Driver

	// Holders returns all holders of the name, in the order of their tokens; none for a free name.
	Holders(ctx context.Context, name string) ([]Ownership, error)
}

// check returns an *InputError for each fault of s, joined.
func (s Share) check(name string, sharer Sharer) error {
	var errs []error
	refuse := func(field, format string, args ...any) {
		errs = append(errs, &InputError{Lock: shortened(name), Field: "Options." + field, Why: fmt.Sprintf(format, args...)})
	}
	if s.Permits < 0 || s.Permits > MaxPermits {
		refuse("Permits", "is %d; use 2 to %d for a semaphore, 0 or 1 for a lock", s.Permits, MaxPermits)
	}
	if s.Mode > Write {
		refuse("Mode", "is %s; use Read or Write for a read-write lock, 0 for a lock", s.Mode)
	}
	if s.Mode != Exclusive && s.Permits != 0 {
		refuse("Permits", "is %d with mode %s; a read-write lock has no permits", s.Permits, s.Mode)
	}
	if sharer == nil && !s.isLock() {
		field, value := "Permits", fmt.Sprint(s.Permits)
		if s.Mode != Exclusive {
			field, value = "Mode", s.Mode.String()
		}
		refuse(field, "is %s; this store has neither semaphores nor read-write locks; redislock has both", value)
	}
	return errors.Join(errs...)
}

// Holders returns all holders of name, in the order of their tokens; none for a free name. A lock
// has at most one holder.
func (l *Locker) Holders(ctx context.Context, name string) ([]Ownership, error) {
	if l.sharer == nil {
		o, err := l.Owner(ctx, name)
		if err != nil || !o.Held() {
			return nil, err
		}
		return []Ownership{o}, nil
	}
	if err := errors.Join(l.refused, checkName(name)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	all, err := l.sharer.Holders(ctx, name)
	if err != nil {
		return nil, named(name, err)
	}
	return all, nil
}
