package cronlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	defaultNamespace = "escapement"
	defaultMaxSkew   = time.Minute
	mostSkew         = 24 * time.Hour

	// keyInfix separates a namespace from the group and name of an entry.
	keyInfix = ":cron:"
)

// Config holds the settings of Once. The zero value is useful.
type Config struct {
	Namespace string // of the marks in Redis; no braces; default "escapement"

	// MaxSkew is how far a tick may be from Redis' clock when it is claimed: the largest difference of a machine's clock
	// that is tolerated, with all delays. At most 24 h. Default 1 min.
	MaxSkew time.Duration

	// Lock is how each run acquires the lock of its entry. With a Wait, a tick waits for the
	// entry's last run, or for the lease of a dead run, MaxSkew at most. Default: no waiting, a TTL
	// of 15 s.
	Lock locking.Options

	// Chain wraps each run, inside the claim, as cron.WithChain would: cron.Recover, for example. The wrappers are
	// applied anew for each run, so cron.SkipIfStillRunning does nothing; the lock does that already, over all machines.
	Chain []cron.JobWrapper

	// Logger gets each tick that does not run here: claimed by another machine (debug), lock held (info), Redis
	// unreachable or a wrong clock (error). Default slog.Default().
	Logger *slog.Logger
}

// Run describes one run of a Named job.
type Run struct {
	Name  string        // of the entry
	Tick  time.Time     // the instant of the schedule, in UTC; with @every the start of the interval
	Token locking.Token // the fencing token: send it with every write
}

// Once returns the option that makes a cron.Cron once-only over the machines of a group. The group is the name of the
// program that has these entries: 1 to 100 bytes of printable UTF-8 without colons. Marks are in client's Redis, locks
// where locker has them.
//
// The option sets the cron's chain. Do not use cron.WithChain besides: of the two, the later one replaces the other.
// Give your wrappers in Config.Chain.
//
// The caller closes locker and client after the cron has stopped and its jobs have ended. To end the contexts of running
// jobs, call locker.ReleaseAll.
//
// Once panics on an argument that it cannot use, and Cron.AddFunc, AddJob and Schedule panic on a job without a name of
// its own.
func Once(group string, locker *locking.Locker, client redis.UniversalClient, cfg Config) cron.Option {
	if cfg.Namespace == "" {
		cfg.Namespace = defaultNamespace
	}
	if cfg.MaxSkew == 0 {
		cfg.MaxSkew = defaultMaxSkew
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := check(group, locker, client, cfg); err != nil {
		panic("cronlock.Once: " + err.Error())
	}
	return func(c *cron.Cron) {
		cron.WithChain(func(job cron.Job) cron.Job {
			name, run, err := identify(job)
			if err != nil {
				panic("cronlock: " + err.Error())
			}
			lock := "cron:" + group + ":" + name
			return &entry{
				name: name, lock: lock, run: run, cfg: cfg, locker: locker, entries: c.Entries,
				mark: mark{client: client, key: "{" + cfg.Namespace + keyInfix + group + ":" + name + "}", skew: cfg.MaxSkew},
				log:  cfg.Logger.With("group", group, "entry", name),
			}
		})(c)
	}
}

func check(group string, locker *locking.Locker, client redis.UniversalClient, cfg Config) error {
	errs := []error{checkText("group", group, 100, ":"), redisconn.Check(client), lockredis.CheckNamespace(cfg.Namespace, keyInfix)}
	if locker == nil {
		errs = append(errs, errors.New("the locker is nil; make one with redislock.New"))
	}
	if cfg.MaxSkew < 0 || cfg.MaxSkew > mostSkew {
		errs = append(errs, fmt.Errorf("Config.MaxSkew is %s; use more than 0 and at most %s", cfg.MaxSkew, mostSkew))
	}
	return errors.Join(errs...)
}

// Named returns a job with a name, the same on all machines: 1 to 400 bytes of printable UTF-8. f gets a context that
// ends when the lease does, and must return then. Entries of one name share their claims: of two ticks at one instant
// one runs.
//
// Add the job to a cron.Cron made with Once. Without that option, or called by hand, it panics: it has no token.
func Named(name string, f func(ctx context.Context, run Run)) cron.Job {
	if err := checkText("name", name, 400, ""); err != nil {
		panic("cronlock.Named: " + err.Error())
	}
	if f == nil {
		panic(fmt.Sprintf("cronlock.Named: the function of %q is nil", name))
	}
	return &named{name: name, f: f}
}
