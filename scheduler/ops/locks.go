package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/sharding"
)

// The kinds of locks.
const (
	LockKind = "lock" // taken by its name
	RunKind  = "run"  // the lease of a run
)

// ErrUnknownLock is returned when a name has no lock and no lease.
var ErrUnknownLock = errors.New("nobody holds it")

// LockView is a held lock, as tools and the API show it: taken by its name, or the lease of a run.
// See Encode for its JSON.
type LockView struct {
	Name    string        `json:"name"` // of a run: its job, "job#2" for a shard
	Kind    string        `json:"kind"` // LockKind or RunKind
	Owner   string        `json:"owner"`
	Holder  string        `json:"holder"` // the holder's own name for itself
	Token   int64         `json:"token,string"`
	TTL     time.Duration `json:"ttl_ms"` // until the lock is free, unless it is renewed; 0 of a lock: not known
	Node    string        `json:"node"`
	Run     string        `json:"run"`
	Waiters int           `json:"waiters"`
	Revoked bool          `json:"revoked"` // its holder has been requested to release it
	Permits int           `json:"permits"` // of a semaphore: how many there are, of which this holder has one; else 0
	Mode    string        `json:"mode"`    // of a read-write lock: "read" or "write"; else ""

	Also []LockView `json:"also,omitempty"` // of one lock: the other grants of its name
}

// LockFilter is a page of the locks, which are in the order of their names.
type LockFilter struct {
	Match string `query:"q"`                                      // a part of the name, in any case of letters
	After string `query:"after"`                                  // the page begins behind this name
	Limit int    `query:"limit" default:"100" min:"1" max:"1000"` // how many at most, except further grants of the last name; 0 is all
}

// lockMargin is by how much a holder stops before Redis gives its lock away.
const lockMargin = time.Second

// lockDrivers are the driver of the locks outside of jobs, and a locker over it.
func lockDrivers(c *conn) (*redislock.Driver, *locking.Locker) {
	driver := redislock.NewDriver(c.Client, redislock.Config{Namespace: c.Namespace})
	return driver, locking.New(driver, locking.Config{Margin: lockMargin})
}

var rowLocks = read("locks", "the locks, and the leases of runs, by name", listLocks)

// ListLocks lists the locks of package redislock, and the leases of runs. It reads the name of
// every key in Redis, a thousand at a time. With an UnreachableError, the readable locks are
// returned too. It returns ErrRefused for a negative limit.
func (c *Client) ListLocks(ctx context.Context, f LockFilter) (Page[LockView], error) {
	return call(ctx, c, rowLocks, f)
}

func listLocks(ctx context.Context, c *conn, f LockFilter) (Page[LockView], error) {
	limit := f.Limit
	if limit == 0 {
		limit = maxInt
	}
	driver, locker := lockDrivers(c)
	defer locker.Close()
	read := limit
	if f.Match != "" {
		read = maxInt // names that do not match take no place on the page
	}
	found, more, unread := driver.List(ctx, f.After, read)
	leases, err := leasesNamed(ctx, c, "")
	if unread = errors.Join(unread, err); unread != nil && len(found)+len(leases) == 0 && !errors.As(err, new(*UnreachableError)) {
		return Page[LockView]{}, unread
	} // else the readable locks are returned with it
	all := make([]LockView, 0, len(found)+len(leases))
	for _, o := range found {
		all = append(all, lockView(o))
	}
	all = append(all, leases...)
	slices.SortStableFunc(all, func(x, y LockView) int { return cmp.Compare(x.Name, y.Name) })
	all = slices.DeleteFunc(all, func(l LockView) bool { return l.Name <= f.After || !matches(l.Name, f.Match) })
	shown := min(len(all), limit)
	for shown > 0 && shown < len(all) && all[shown].Name == all[shown-1].Name {
		shown++
	}
	list := Page[LockView]{Items: all[:shown]}
	if (more || shown < len(all)) && shown > 0 {
		list.Next = all[shown-1].Name
	}
	return list, unread
}

const maxInt = int(^uint(0) >> 1)

var rowLock = read("locks/{name}", "what is held by a name", byName(getLock))

// GetLock finds the lock of a name, or else a lease of a run. Further grants are in Also, a
// semaphore's too. It returns ErrUnknownLock when the name has no lock and no lease, and a
// locking.InputError for a name that no lock can have.
func (c *Client) GetLock(ctx context.Context, name string) (LockView, error) {
	return call(ctx, c, rowLock, named{name})
}

func getLock(ctx context.Context, c *conn, name string) (LockView, error) {
	held, err := heldByName(ctx, c, name)
	if len(held) == 0 {
		return LockView{}, cmp.Or(err, fmt.Errorf("lock %q: %w; `locks list` shows what is held", name, ErrUnknownLock))
	}
	held[0].Also = held[1:]
	return held[0], err
}

// heldByName is every grant of a name, the lock's holders first. With an error, the readable grants
// are returned too.
func heldByName(ctx context.Context, c *conn, name string) ([]LockView, error) {
	_, locker := lockDrivers(c)
	defer locker.Close()
	holders, err := locker.Holders(ctx, name)
	if err != nil {
		return nil, err
	}
	var held []LockView
	for _, o := range holders {
		held = append(held, lockView(o))
	}
	leases, err := leasesNamed(ctx, c, name)
	return append(held, leases...), err
}

// leasesNamed are the leases of a job's runs, or of one of its shards, or with "" of all runs. None
// when there is no such job.
func leasesNamed(ctx context.Context, c *conn, name string) ([]LockView, error) {
	job, _, _ := strings.Cut(name, "#") // which is in no job's name
	views, err := leases(ctx, c, job)
	if errors.Is(err, ErrUnknownJob) || errors.Is(err, ErrUnknownNamespace) {
		return nil, nil
	}
	return slices.DeleteFunc(views, func(l LockView) bool { return name != job && l.Name != name }), err
}

// leases are the leases of the runs of a job, or with "" of all, by job, shard and token. Pending
// runs have none.
func leases(ctx context.Context, c *conn, job string) ([]LockView, error) {
	l, parts, _, left, err := partsOf(ctx, c, job)
	if err != nil {
		return nil, err
	}
	open, err := query.InFlightIn(ctx, l, parts)
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(r ledger.Run) bool { return r.Token == 0 || r.IsOpenTick || job != "" && r.Job != job })
	slices.SortFunc(open, func(a, b ledger.Run) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Token, b.Token))
	})
	views := make([]LockView, len(open))
	for i, r := range open {
		views[i] = leaseView(r, now.UnixMilli())
	}
	return views, left
}

func leaseView(r ledger.Run, now int64) LockView {
	return LockView{
		Name: sharding.Part(r.Job, r.Shard, r.Shards), Kind: RunKind, Owner: r.ID, Token: r.Token, TTL: ms(max(0, r.Until-now)), Node: cmp.Or(r.NodeName, r.Node), Run: r.ID,
	}
}

func lockView(o locking.Ownership) LockView {
	mode := ""
	if o.Share.Mode != locking.Exclusive {
		mode = o.Share.Mode.String()
	}
	return LockView{
		Permits: o.Share.Permits, Mode: mode,
		Name: o.Name, Kind: LockKind, Owner: o.Owner, Holder: o.Holder, Token: o.Token,
		TTL: max(0, o.Left), Waiters: o.Waiters, Revoked: o.Revoked,
	}
}

// Who names a holder with its token.
func (l LockView) Who() string {
	if l.Kind == RunKind {
		return fmt.Sprintf("run %s on %s with token %d", l.Run, cmp.Or(l.Node, "an unnamed node"), l.Token)
	}
	return fmt.Sprintf("%s with token %d", cmp.Or(l.Holder, "owner "+l.Owner), l.Token)
}
