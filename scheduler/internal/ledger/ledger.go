package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Format is the version of the namespace's layout; every record carries its own as well. Up to 1,
// definitions were stored by job.
const Format = "2"

// BatchMax is the largest number of items that one call of the ledger takes: a script of so many
// claims takes Redis a millisecond.
const BatchMax = 200

// CallTimeout bounds one call to Redis.
const CallTimeout = time.Second

// PageMax is the largest number of items that one script call or one reading takes where an item
// may cost much.
const PageMax = 50

// PendingMax bounds the pending runs of one partition; a trigger beyond it is refused.
const PendingMax = 10_000

// keepForLeast is the shortest age at which rows may leave: for so long nodes report recent ends to
// a server that lost them.
const keepForLeast = time.Minute

// DefaultKeepFor is Config.KeepFor where none is set.
const DefaultKeepFor = 168 * time.Hour

// DefaultNamespace is the namespace where none is named.
const DefaultNamespace = "escapement"

var namespaceWords = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// Config sets where a ledger lives and how much it keeps.
type Config struct {
	// Namespace is the prefix that keeps two installations in one Redis apart; letters, digits
	// and ._- up to 64. Default DefaultNamespace.
	Namespace string
	// Partitions is the number of hash slots' worth of jobs, 1 to 1024, fixed when the namespace
	// is created; 0 takes what is stored, or for a new namespace 1, on a Cluster 64.
	Partitions int
	// MaxSkew is the largest difference between Redis' clock and a caller's idea of it at which
	// a script still acts. Default 1 s.
	MaxSkew time.Duration
	// Generation is the label of the deployed cluster that the caller belongs to; "" is one as
	// well. The first to open a namespace makes it the active one.
	Generation string
	// Keep is the number of history rows kept per job (up to 15 more for a while), at least 16.
	// Default 200.
	Keep int
	// KeepFor is how long rows are kept, whichever of the two is reached first; rows leave when
	// another one is added. At least 1 min. Default 168 h.
	KeepFor time.Duration
	// NewID makes the ids of incarnations. Default: a random uuid.
	NewID func() string
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, DefaultNamespace)
	c.MaxSkew = cmp.Or(c.MaxSkew, time.Second)
	c.Keep = cmp.Or(c.Keep, 200)
	c.KeepFor = cmp.Or(c.KeepFor, DefaultKeepFor)
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	return c
}

// Validate returns everything that is wrong with the settings, as one error.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if !namespaceWords.MatchString(c.Namespace) {
		errs = append(errs, fmt.Errorf("namespace %q: letters, digits and ._- only, beginning with a letter or digit, at most 64", c.Namespace))
	}
	if c.Partitions < 0 || c.Partitions > 1024 {
		errs = append(errs, fmt.Errorf("partitions %d: must lie between 1 and 1024", c.Partitions))
	}
	if c.Generation != "" && !namespaceWords.MatchString(c.Generation) {
		errs = append(errs, fmt.Errorf("generation %q: letters, digits and ._- only, beginning with a letter or digit, at most 64", c.Generation))
	}
	if c.Keep < 16 {
		errs = append(errs, fmt.Errorf("history keep %d: must be at least 16", c.Keep))
	}
	if c.KeepFor < keepForLeast {
		errs = append(errs, fmt.Errorf("history keep_for %s: must be at least %s, for so long nodes remember what ended", c.KeepFor, keepForLeast))
	}
	return errors.Join(errs...)
}

// Ledger is one namespace's ledger in one Redis. It is safe for concurrent use and holds no
// connection, goroutine or cache of its own.
type Ledger struct {
	Client redis.UniversalClient
	Config Config
	Keys   []Keys                          // by partition
	Known  string                          // id of the only epoch to be talked to, "" for any
	idea   func(context.Context) time.Time // the caller's idea of Redis' time; nil: none

	Confirm int // how many replicas are to have a claim

	made *sync.Map // by partition, the last incarnation that was made here
}

// At returns the ledger for a caller that relies on the partition's runs in the epoch of this id:
// Claim, Renew and Settle then do nothing but return ErrServer in another epoch, in which runs may
// be lost. "" is any epoch.
func (l *Ledger) At(epoch string) *Ledger {
	there := *l
	there.Known = epoch
	return &there
}

// Believing returns the ledger for a caller with an idea of Redis' time; a zero time is none. Times
// that scripts store by Redis' clock are kept within MaxSkew of the idea, so that nothing outlives
// a clock which the caller does not believe. Methods with the time as an argument return ErrClock
// instead.
func (l *Ledger) Believing(idea func(context.Context) time.Time) *Ledger {
	there := *l
	there.idea = idea
	return &there
}

// Now is the caller's idea of Redis' time, and Redis' own time when the caller has none.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	if ms := l.Believed(ctx); ms > 0 {
		return time.UnixMilli(ms).UTC(), nil
	}
	now, _, err := l.Time(ctx)
	return now, err
}

// Believed is the caller's idea of Redis' time, ms; 0 for none.
func (l *Ledger) Believed(ctx context.Context) int64 {
	if l.idea == nil {
		return 0
	}
	return max(0, l.idea(ctx).UnixMilli())
}

// Join opens a namespace, creating its control record if this is the first node ever. A number
// of partitions other than the stored one is refused, as is a layout newer than this version's.
func Join(ctx context.Context, client redis.UniversalClient, cfg Config) (*Ledger, error) {
	return open(ctx, client, cfg, true)
}

// OpenExisting is Join for tools: it creates nothing and returns ErrNoNamespace when no node has
// ever run there.
func OpenExisting(ctx context.Context, client redis.UniversalClient, cfg Config) (*Ledger, error) {
	return open(ctx, client, cfg, false)
}

func open(ctx context.Context, client redis.UniversalClient, cfg Config, create bool) (*Ledger, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.Validate(), redisconn.Check(client)); err != nil {
		return nil, err
	}
	stored, err := control(ctx, client, cfg, create)
	if err != nil {
		return nil, err
	}
	n := stored.Partitions
	if cfg.Partitions != 0 && cfg.Partitions != n {
		return nil, fmt.Errorf("%w: namespace %q was created with %d partitions and this node is configured with %d; set partitions to %d, or use another namespace",
			ErrRefused, cfg.Namespace, n, cfg.Partitions, n)
	}
	l := &Ledger{Client: client, Config: cfg, Keys: make([]Keys, n), made: new(sync.Map)}
	l.Config.Partitions = n
	for p := range l.Keys {
		l.Keys[p] = PartitionKeys(cfg.Namespace, p)
	}
	if create {
		if err = l.incarnate(ctx, stored, l.All(), false); errors.As(err, new(*UnreachableError)) {
			err = nil // Restore does it before anything is registered there
		}
	}
	return l, err
}

// Namespace is the namespace's name.
func (l *Ledger) Namespace() string { return l.Config.Namespace }

// Partitions is the namespace's number of partitions.
func (l *Ledger) Partitions() int { return len(l.Keys) }

// Partition returns the partition that a job lives in.
func (l *Ledger) Partition(job string) int { return Partition(job, len(l.Keys)) }

// Tag begins the keys of a job's partition.
func (l *Ledger) Tag(job string) string { return l.Keys[l.Partition(job)].Tag }

// ByPartition groups the places 0..n-1 by the partition of their job: one group for each
// partition, in order, empty where it has none of the jobs.
func (l *Ledger) ByPartition(n int, job func(int) string) [][]int {
	groups := make([][]int, len(l.Keys))
	for i := range n {
		p := l.Partition(job(i))
		groups[p] = append(groups[p], i)
	}
	return groups
}

// PartitionsOf are the partitions in which the named jobs live.
func (l *Ledger) PartitionsOf(names []string) (parts []int) {
	for p, places := range l.ByPartition(len(names), func(i int) string { return names[i] }) {
		if len(places) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// Confirming returns the ledger for claims that wait until so many replicas have them; see
// Answer.Unconfirmed.
func (l *Ledger) Confirming(replicas int) *Ledger {
	there := *l
	there.Confirm = replicas
	return &there
}

// UniqueMax bounds the unique keys that one partition remembers.
const UniqueMax = 100_000
