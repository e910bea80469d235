package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
)

// ErrNotLeader is returned by IsLeader on a machine that is not the leader.
var ErrNotLeader = errors.New("not the leader")

const (
	// waitFor is how long one call waits for the lock. The next one follows at once.
	waitFor = time.Hour

	// pauseAfter is the pause after a call that the store refused.
	pauseAfter = time.Second
)

// ElectorConfig holds the settings of an Elector. The zero value is useful.
type ElectorConfig struct {
	TTL    time.Duration // how long after its death a leader is replaced; default 15 s
	Holder string        // describes this machine, for operators; at most 128 bytes
	Logger *slog.Logger  // gets each change (info) and each refusal of the store (error); default slog.Default()
}

// Elector implements gocron.Elector: the machine that holds the lock is the leader.
type Elector struct {
	name   string
	locker *locking.Locker
	cfg    ElectorConfig
	lease  atomic.Pointer[locking.Lease] // nil: not the leader
}

// NewElector returns an Elector for the machines of a group: the name of the program. The lock is
// called gocron:group:leader. There is no leader until Run is called. The caller closes locker
// after Run has returned. The error is not nil for an empty group or a nil locker.
func NewElector(group string, locker *locking.Locker, cfg ElectorConfig) (*Elector, error) {
	switch {
	case group == "":
		return nil, fmt.Errorf("gocronlock: the group is empty; give the name of the program")
	case locker == nil:
		return nil, fmt.Errorf("gocronlock: the locker is nil; make one with redislock.New")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Elector{name: "gocron:" + group + ":leader", locker: locker, cfg: cfg}, nil
}

// Run waits until this machine is the leader, and again whenever it has lost that. It blocks until ctx ends, gives up the
// lead and returns nil. It returns an *locking.InputError when an argument was refused. Call it once.
func (e *Elector) Run(ctx context.Context) error {
	options := locking.Options{TTL: e.cfg.TTL, Holder: e.cfg.Holder, Wait: waitFor}
	for ctx.Err() == nil {
		lease, err := e.locker.Acquire(ctx, e.name, options)
		if err == nil {
			e.lead(ctx, lease)
			continue
		}
		var input *locking.InputError
		if errors.As(err, &input) {
			return err
		}
		if ctx.Err() != nil || errors.Is(err, locking.ErrHeld) { // waitFor is over
			continue
		}
		e.cfg.Logger.ErrorContext(ctx, "no leader elected: the store refused", "lock", e.name, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pauseAfter):
		}
	}
	return nil
}

// lead is the time in which this machine is the leader. It ends with ctx or the lease.
func (e *Elector) lead(ctx context.Context, lease *locking.Lease) {
	e.cfg.Logger.InfoContext(ctx, "leader", "lock", e.name, "token", lease.Token())
	e.lease.Store(lease)
	<-lease.Context().Done()
	e.lease.Store(nil)
	e.cfg.Logger.InfoContext(ctx, "leader no more", "lock", e.name, "token", lease.Token(), "cause", context.Cause(lease.Context()))
	if err := lease.Release(ctx); err != nil && !errors.Is(err, locking.ErrLost) {
		e.cfg.Logger.WarnContext(ctx, "the lead is not released, and lapses", "lock", e.name, "error", err)
	}
}

// IsLeader implements gocron.Elector. It compares clocks and does not call the store. The error is ErrNotLeader.
func (e *Elector) IsLeader(context.Context) error {
	if lease := e.lease.Load(); lease == nil || !lease.Valid() {
		return ErrNotLeader
	}
	return nil
}

// Lease returns the lease of the leader, nil on other machines. A job that takes it works under its Context and sends its
// Token with each write.
func (e *Elector) Lease() *locking.Lease { return e.lease.Load() }
