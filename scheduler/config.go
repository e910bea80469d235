package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/testseam"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ConfirmMajority, as Config.Confirm, requires the confirmation of (r+1)/2 of the master's r
// replicas, counted at the node's start, at least 1. On a Cluster the master with the fewest
// replicas counts.
const ConfirmMajority = -1

// ClaimAheadMax is the largest Config.ClaimAhead, 500 ms.
const ClaimAheadMax = claim.AheadMax

// Config holds a node's settings. The zero value is useful.
type Config struct {
	// Namespace is the prefix of all keys. Installations with different namespaces can share a
	// Redis. Default "escapement".
	Namespace string
	// Partitions is the number of groups into which jobs are hashed, 1 to 1024. It is fixed when
	// the namespace is created. Default: the stored number; for a new namespace 1, on a Cluster 64.
	Partitions int
	// Name is the node's name in lists and logs; letters, digits and ._:/-, at most 128. Default:
	// host name.
	Name string
	// Version is the program's version in lists. Default: the main module's.
	Version string
	// Revision orders builds: of two definitions of a job, the one with the greater revision
	// (compared as text) decides. Default: the build's VCS time.
	Revision string
	// Generation is the label of the deployed cluster that the node belongs to; letters, digits and
	// ._-, at most 64. A namespace's first generation is active. Nodes of another one are on
	// standby and claim nothing until their generation is promoted. Default "", which is a
	// generation too.
	Generation string
	// Labels describe the node. A job with labels runs only on nodes that have all of them.
	Labels map[string]string
	// Weight is the node's share of the jobs relative to other nodes, 1 to 1000. Default 1.
	Weight int
	// MaxRunning bounds the runs that the node carries at once, from claim to settle, 1 to 100,000.
	// Claims and reports that wait for an unreachable master of a Cluster do not count. Default
	// 512.
	MaxRunning int
	// Grace is how late a tick must be before nodes other than its owner claim it. Default 500 ms.
	Grace time.Duration
	// ClaimAhead is how long before it is due the node claims a tick of a job that it owns, at most
	// ClaimAheadMax (500 ms). The run starts when the tick is due, never before. Negative: the tick
	// is claimed when it is due. Default 0: as long as claims have taken lately, at least 20 ms.
	ClaimAhead time.Duration
	// SweepEvery is how often the node looks for late ticks, lapsed leases and pending runs.
	// Default 250 ms.
	SweepEvery time.Duration
	// MaxSkew is how far Redis' clock may be from the node's estimate before a claim is refused,
	// and the margin by which a run ends before its lease. A job's ttl must be at least three times
	// as long. Default 1 s.
	MaxSkew time.Duration
	// MaxStep is the largest step of Redis' clock that the node accepts in any case. It accepts a
	// larger one only if Redis' clock comes nearer to the node's own. At least MaxSkew. Default 60
	// s.
	MaxStep time.Duration
	// FailoverHold bounds how long the node claims nothing after Redis was restarted or failed over
	// and takes writes again, while all nodes report their runs. 100 ms to 1 min. Default 3 s.
	FailoverHold time.Duration
	// DrainTimeout is how long runs may go on after the node's stop; then they are cancelled.
	// Default 30 s.
	DrainTimeout time.Duration
	// HistoryKeep is the number of history rows kept for each job, at least 16. A tick of a sharded
	// job has one row for each shard and one more; the rows of two ticks must fit. Default 200.
	HistoryKeep int
	// HistoryKeepFor is how long rows are kept, if HistoryKeep is not reached before. Old rows are
	// deleted when a new one is added. At least 1 min, the time for which nodes remember ended
	// runs. Default 168 h.
	HistoryKeepFor time.Duration
	// Guards are lockers, of any store, by the names that Job.Guard uses. A run of such a job
	// starts only when the node also holds the lock of the job's name there, with the job's TTL. A
	// TTL below three times the locker's margin blocks the job's runs for ever; the log names the
	// cause. The caller closes the lockers after Run. Default none.
	Guards map[string]*locking.Locker
	// Confirm is how many replicas must have a grant before its run begins; ConfirmMajority is a
	// majority of all copies. It costs a round trip to the replicas, and makes it less likely that
	// a failover loses a grant, not impossible. A grant that too few have confirmed after half a
	// second is handed back, and nothing more is claimed there until they confirm. Default 0: none.
	Confirm int
	// Next is a client of the Redis to which the namespace is going to move; the caller keeps it.
	// While the move has closed the namespace, the node checks that Redis every second, and Run
	// returns ErrMoved when the namespace is open there. Default nil: no move is expected.
	Next redis.UniversalClient
	// WaitForRedis makes Run wait, and log, while Redis cannot be reached at the start, instead of
	// returning an error.
	WaitForRedis bool
	// Logger gets the node's log. A handler that blocks delays the recording of outcomes. Default
	// slog.Default().
	Logger *slog.Logger
	// Hooks receive events, for metrics and the like. Default none.
	Hooks *Hooks
	// Middleware wraps the function of every job, once, when the node is made. The wrapped function
	// is called for each try of each run, with the run's context. Default none.
	Middleware func(next jobs.Func) jobs.Func

	seam testseam.Seam
}

func init() { testseam.Of = func(config any) *testseam.Seam { return &config.(*Config).seam } }

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, ledger.DefaultNamespace)
	if c.Name == "" {
		c.Name, _ = os.Hostname() // validate refuses an empty name
	}
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		c.Version = cmp.Or(c.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				c.Revision = cmp.Or(c.Revision, s.Value)
			}
		}
	}
	c.Labels, c.Guards = maps.Clone(c.Labels), maps.Clone(c.Guards) // the caller may change its maps later
	if c.Hooks != nil {
		hooks := *c.Hooks
		c.Hooks = &hooks
	}
	c.Weight = cmp.Or(c.Weight, 1)
	c.MaxRunning = cmp.Or(c.MaxRunning, 512)
	c.Grace = cmp.Or(c.Grace, 500*time.Millisecond)
	c.SweepEvery = cmp.Or(c.SweepEvery, 250*time.Millisecond)
	c.MaxSkew = cmp.Or(c.MaxSkew, time.Second)
	c.MaxStep = cmp.Or(c.MaxStep, time.Minute)
	c.FailoverHold = cmp.Or(c.FailoverHold, 3*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 30*time.Second)
	c.HistoryKeep = cmp.Or(c.HistoryKeep, 200)
	c.HistoryKeepFor = cmp.Or(c.HistoryKeepFor, 168*time.Hour)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.seam.Wall == nil {
		c.seam.Wall = time.Now
	}
	if c.seam.ZoneData == nil {
		c.seam.ZoneData = cron.ZoneData
	}
	if c.seam.NewID == nil {
		c.seam.NewID = newID
	}
	return c
}

// ledger is the ledger's part of the settings.
func (c Config) ledger() ledger.Config {
	return ledger.Config{
		Namespace: c.Namespace, Partitions: c.Partitions, MaxSkew: c.MaxSkew, Generation: c.Generation,
		Keep: c.HistoryKeep, KeepFor: c.HistoryKeepFor,
	}
}

var nodeWords = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,127}$`)

func (c Config) validate(reg *jobs.Registry) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	between := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			bad("%s is %s: must lie between %s and %s", name, d, least, most)
		}
	}
	if !nodeWords.MatchString(c.Name) {
		bad("node name %q: letters, digits and ._:/- only, beginning with a letter or digit, at most 128; set Name", c.Name)
	}
	if len(c.Revision) > 128 {
		bad("revision: %d bytes, at most 128", len(c.Revision))
	}
	if c.Weight < 1 || c.Weight > 1000 {
		bad("weight is %d: must lie between 1 and 1000", c.Weight)
	}
	if c.MaxRunning < 1 || c.MaxRunning > 100_000 {
		bad("max_running is %d: must lie between 1 and 100000", c.MaxRunning)
	}
	if c.Confirm < ConfirmMajority || c.Confirm > 100 {
		bad("confirm is %d: must lie between 0 and 100, or be ConfirmMajority", c.Confirm)
	}
	between("grace", c.Grace, 10*time.Millisecond, time.Minute)
	if c.ClaimAhead > ClaimAheadMax {
		bad("claim_ahead is %s: must be %s at most, or negative for off", c.ClaimAhead, ClaimAheadMax)
	}
	between("sweep_every", c.SweepEvery, 10*time.Millisecond, time.Minute)
	between("max_skew", c.MaxSkew, 100*time.Millisecond, time.Minute)
	between("failover_hold", c.FailoverHold, 100*time.Millisecond, time.Minute)
	between("drain_timeout", c.DrainTimeout, 0, 24*time.Hour)
	//guard:config-refused P8 settings that do not go together are refused before anything runs
	if c.MaxStep < c.MaxSkew {
		bad("max_step is %s and max_skew %s: max_step must not be the smaller", c.MaxStep, c.MaxSkew)
	}
	if c.Next != nil {
		if err := redisconn.Check(c.Next); err != nil {
			bad("next: %w", err)
		}
	}
	errs = append(errs, c.ledger().Validate(), reg.Check())
	for _, j := range reg.All() {
		if j.Guard != "" && c.Guards[j.Guard] == nil {
			bad("job %s: there is no guard %q; add it to Guards", j.Name, j.Guard)
		}
		if j.TTL < 3*c.MaxSkew {
			bad("job %s: ttl is %s and max_skew %s: a ttl must be at least three times max_skew", j.Name, j.TTL, c.MaxSkew)
		}
		if rows := j.Shards + 1; j.Shards > 1 && c.HistoryKeep < 2*rows {
			bad("job %s: one tick of %d shards makes %d rows of history, and history.keep is %d: it must be at least %d",
				j.Name, j.Shards, rows, c.HistoryKeep, 2*rows)
		}
	}
	return errors.Join(errs...)
}

// newID is a uuid v7, so ids sort by creation time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// jobsOf prepares jobs for a node with these settings.
func jobsOf(list []jobs.Job, cfg Config) ([]*work.Job, error) {
	all := make([]*work.Job, 0, len(list))
	for _, j := range list {
		schedule, err := j.ParsedSchedule()
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		if cfg.Middleware != nil {
			if j.Func = cfg.Middleware(j.Func); j.Func == nil {
				return nil, fmt.Errorf("job %s: the middleware returned no function", j.Name)
			}
		}
		def := j.Definition()
		//guard:generation-apart P7 the same job of another generation has another definition
		def.Generation = cfg.Generation
		all = append(all, &work.Job{Job: j, Schedule: schedule, Def: def, Digest: def.Digest()})
	}
	return all, nil
}
