package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/notices"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// lockName is the lock of the notifier that works. No job can be called so.
const lockName = "@notifier"

// Config holds the settings of a Notifier. All notifiers of a namespace should have the same.
type Config struct {
	Namespace string   // default "escapement"
	Targets   []Target // receivers; at least one
	// Every is the pause between two looks. 1 s to 1 h, default 5 s.
	Every time.Duration
	// GroupFor is how long the first event of a message waits for further events. 0 to 1 h; 0 is
	// the default, 10 s, and below 0 none.
	GroupFor time.Duration
	// LateAfter is how long a tick must have been due before its job is late or overdue. 10 s to 24
	// h, default 1 minute.
	LateAfter time.Duration
	// AtMost is the number of messages that a target gets in an hour. 1 to 1000, default 20.
	AtMost int
	Node   string // the node's name, shown as holder of the lock; default empty
	Logger *slog.Logger
}

// Target is a receiver of messages. Exactly one of Webhook, Command and Func is set.
type Target struct {
	// Name names the target in messages and in Redis: letters, digits and . _ -, at most 64.
	Name string
	// Jobs restricts it to jobs whose names match, as in path.Match. Default all jobs.
	Jobs string
	// On restricts it to some kinds of events, and the recovery from them. Default all kinds.
	On []Kind
	// Each: each event is a message of its own, for receivers that track one problem by its key.
	Each bool
	// Webhook is called with each message.
	Webhook *Webhook
	// Command is run with each message: the program and its arguments. It gets the message as JSON
	// on its standard input, and in the variables NOTIFY_ID, NOTIFY_NAMESPACE and NOTIFY_TEXT.
	Command []string
	// Func is called with each message, and may be called with it again after an error or a crash.
	Func Func
}

// Func delivers a message. It must return soon after ctx ends. A call that does not return is
// logged and left behind: Func is not called again before it returns, and the other targets go on.
type Func func(ctx context.Context, m Message) error

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, ledger.DefaultNamespace)
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.GroupFor = max(0, cmp.Or(c.GroupFor, 10*time.Second))
	c.LateAfter = cmp.Or(c.LateAfter, time.Minute)
	c.AtMost = cmp.Or(c.AtMost, 20)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Notifier notifies the targets of the jobs of a namespace, while it holds the lock.
type Notifier struct {
	client  redis.UniversalClient
	cfg     Config
	log     *slog.Logger
	callers *callers
	failed  bool // the last look or the last call for the lock; it was logged
}

// New makes a notifier over a client that the caller keeps. It sends nothing. The error joins a
// *jobs.FieldError for each fault.
func New(client redis.UniversalClient, cfg Config) (*Notifier, error) {
	if err := errors.Join(redisconn.Check(client), cfg.Validate()); err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Notifier{client: client, cfg: cfg, log: cfg.Logger, callers: newCallers(cfg.Logger)}, nil
}

// Run works, or waits for the lock, until ctx ends. It then waits for messages that are being sent,
// for some seconds at most, and returns nil. It returns an error that wraps redis.ErrClosed when
// the program has closed the client.
func (n *Notifier) Run(ctx context.Context) error {
	locker := redislock.New(n.client, redislock.Config{Namespace: n.cfg.Namespace, Logger: n.log})
	defer locker.Close()
	for ctx.Err() == nil {
		lease, err := locker.Try(context.WithoutCancel(ctx), lockName, locking.Options{Holder: line(n.cfg.Node, 128)})
		switch {
		case err == nil:
			n.hold(ctx, lease)
		case errors.Is(err, locking.ErrHeld):
			n.failed = false
		case errors.Is(err, redis.ErrClosed) && redisconn.IsClosed(ctx, n.client):
			return fmt.Errorf("notify: %w; close the client after Run has returned", err)
		default:
			n.complain("notifications: the lock cannot be had", err)
		}
		wait.For(ctx, n.cfg.Every+rand.N(n.cfg.Every/4))
	}
	return nil
}

// hold works as long as the lock is held. A failed read or write ends a term; the next term begins
// with the records in Redis.
func (n *Notifier) hold(ctx context.Context, lease *locking.Lease) {
	held := lease.Context()
	for ctx.Err() == nil && held.Err() == nil {
		err := n.term(ctx, held, lease.Token())
		if errors.Is(err, notices.ErrStale) {
			if held.Err() == nil { // not this lock's next holder, so a failover has gone back in time
				n.complain("notifications: somebody with a later token has written", err)
			}
			break
		}
		if err != nil && held.Err() == nil && !errors.Is(err, ledger.ErrNoNamespace) {
			n.complain("notifications: a look has failed", err)
		}
		wait.For(ctx, n.cfg.Every)
	}
	if err := lease.Release(context.WithoutCancel(ctx)); err != nil && held.Err() == nil {
		n.log.Debug("notifications: the lock is not released", "error", err)
	}
}

// complain logs the first of a series of failures.
func (n *Notifier) complain(msg string, err error) {
	if !n.failed {
		n.log.Warn(msg+"; it is tried again", "error", err) //nolint:sloglint // one of two literals
	}
	n.failed = true
}

// term looks and sends, beginning with the records in Redis, until ctx or the lock's context ends,
// or an error.
func (n *Notifier) term(ctx, held context.Context, token locking.Token) error {
	w, err := newWatch(ctx, n.client, n.cfg, token)
	if err != nil {
		return err
	}
	p := newPost(held, n.cfg, n.callers)
	defer p.wait()
	ticker := time.NewTicker(n.cfg.Every)
	defer ticker.Stop()
	for {
		if err := w.compare(held); err != nil {
			return err
		}
		n.failed = false
		for looking := true; looking; {
			if err := w.send(held, p); err != nil {
				return err
			}
			select {
			case r := <-p.results:
				w.sent(p, r)
			case <-ticker.C:
				looking = false
			case <-held.Done():
				return context.Cause(held)
			case <-ctx.Done():
				return w.finish(held, p)
			}
		}
	}
}

// wants reports whether a target takes an event.
func (t Target) wants(e Event) bool {
	return (len(t.On) == 0 || slices.Contains(t.On, e.Kind)) && (t.Jobs == "" || matches(t.Jobs, e.Job))
}
