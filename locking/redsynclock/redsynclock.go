package redsynclock

import (
	"time"

	"github.com/escapement/escapement/locking"
)

const (
	defaultExpiry     = 8 * time.Second
	defaultTries      = 32
	defaultRetryDelay = 150 * time.Millisecond // the mean of redsync's

	// maxWait bounds the wait that tries and delay give together.
	maxWait = 30 * 24 * time.Hour
)

// Redsync makes mutexes over one locker.
type Redsync struct {
	locker *locking.Locker
}

// New returns a Redsync over a locker. The caller closes the locker.
func New(locker *locking.Locker) *Redsync { return &Redsync{locker: locker} }

// NewMutex returns a mutex for the lock called name: 1 to 512 bytes of printable UTF-8. It does not call the store.
func (r *Redsync) NewMutex(name string, options ...Option) *Mutex {
	m := &Mutex{locker: r.locker, name: name, expiry: defaultExpiry, tries: defaultTries, delay: defaultRetryDelay}
	for _, o := range options {
		o.Apply(m)
	}
	return m
}

// An Option configures a Mutex.
type Option interface {
	Apply(*Mutex)
}

// OptionFunc is a function that configures a Mutex.
type OptionFunc func(*Mutex)

// Apply calls f.
func (f OptionFunc) Apply(m *Mutex) { f(m) }

// WithExpiry sets how long the store keeps the lock without an Extend or a renewal. At least three margins of the locker,
// at most 30 days. Default 8 s.
func WithExpiry(expiry time.Duration) Option {
	return OptionFunc(func(m *Mutex) { m.expiry = expiry })
}

// WithTries sets, together with the retry delay, how long Lock waits: tries less one, times the delay, at most 30 days.
// Default 32.
func WithTries(tries int) Option {
	return OptionFunc(func(m *Mutex) { m.tries = tries })
}

// WithRetryDelay sets the delay that counts for each of the tries. Default 150 ms.
func WithRetryDelay(delay time.Duration) Option {
	return OptionFunc(func(m *Mutex) { m.delay = delay })
}

// WithRenewal has the lock renewed until Unlock. Default: it ends after its expiry.
func WithRenewal() Option {
	return OptionFunc(func(m *Mutex) { m.renew = true })
}

// wait returns how long Lock waits.
func (m *Mutex) wait() time.Duration {
	if m.tries <= 1 || m.delay <= 0 {
		return 0
	}
	if m.delay > maxWait/time.Duration(m.tries-1) {
		return maxWait
	}
	return time.Duration(m.tries-1) * m.delay
}
