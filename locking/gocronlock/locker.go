package gocronlock

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/escapement/escapement/locking"
)

// Locker implements gocron.Locker. See the package comment for its limits.
type Locker struct {
	group   string
	locker  *locking.Locker
	atLeast time.Duration
	options locking.Options
}

// NewLocker returns a Locker for the jobs of a group: the name of the program. The lock of a job is
// called gocron:group:job, 512 bytes at most. It stays held for atLeast from when it was acquired,
// and longer if the job runs longer. o is for each acquisition; with a Wait, a machine runs the
// tick after another machine has run it.
//
// The caller closes locker after the scheduler is shut down, and calls locker.ReleaseAll before, to
// release the locks that are still held for atLeast. The error is not nil for an empty group, a nil
// locker or a negative time.
func NewLocker(group string, locker *locking.Locker, atLeast time.Duration, o locking.Options) (*Locker, error) {
	switch {
	case group == "":
		return nil, fmt.Errorf("gocronlock: the group is empty; give the name of the program")
	case locker == nil:
		return nil, fmt.Errorf("gocronlock: the locker is nil; make one with redislock.New")
	case atLeast < 0:
		return nil, fmt.Errorf("gocronlock: atLeast is %s, which is negative; give the largest difference of the machines' clocks", atLeast)
	}
	return &Locker{group: group, locker: locker, atLeast: atLeast, options: o}, nil
}

// Lock implements gocron.Locker: it acquires the lock of the job called key. The error wraps
// locking.ErrHeld when another machine has the lock; see locking.Locker for further errors.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.locker.Acquire(ctx, "gocron:"+l.group+":"+key, l.options)
	if err != nil {
		return nil, err
	}
	return &lock{lease: lease, until: time.Now().Add(l.atLeast)}, nil
}

// lock is held from Lock to Unlock, and until a moment.
type lock struct {
	lease *locking.Lease
	until time.Time
}

// Unlock implements gocron.Lock: it releases the lock, now or at the moment until which it is held. The error wraps
// locking.ErrLost when the lock was lost before.
func (l *lock) Unlock(ctx context.Context) error {
	left := time.Until(l.until)
	if left <= 0 || !l.lease.Valid() {
		return l.lease.Release(ctx)
	}
	time.AfterFunc(left, func() {
		_ = l.lease.Release(ctx) // without an answer the locker repeats it, and logs that
	})
	return nil
}

var (
	_ gocron.Locker  = (*Locker)(nil)
	_ gocron.Lock    = (*lock)(nil)
	_ gocron.Elector = (*Elector)(nil)
)
