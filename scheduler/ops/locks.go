package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
)

// The kinds of locks.
const (
	LockKind = "lock" // somebody took it by its name
	RunKind  = "run"  // the lease of a run
)

// ErrUnknownLock is returned when nobody holds anything by that name.
var ErrUnknownLock = errors.New("nobody holds it")

// LockView is a lock that is held, as tools and the API show it: one that somebody took by its name, or the lease of a run.
type LockView struct {
	Name    string `json:"name"` // of a run: its job, "job#2" for a shard
	Kind    string `json:"kind"` // LockKind or RunKind
	Owner   string `json:"owner"`
	Holder  string `json:"holder"` // who that is, as it said
	Token   string `json:"token"`
	TTLMS   int64  `json:"ttl_ms"` // until others can have it, unless it is renewed; 0 of a lock: nobody knows
	Node    string `json:"node"`
	Run     string `json:"run"`
	Waiters int    `json:"waiters"`
	Revoked bool   `json:"revoked"` // its holder has been asked to end
	Permits int    `json:"permits"` // of a semaphore: how many there are, of which this holder has one; else 0
	Mode    string `json:"mode"`    // of a read-write lock: "read" or "write"; else ""

	Also []LockView `json:"also,omitempty"` // of one that was asked for: what else is held by that name
}

// LockFilter is a page of the locks, which are in the order of their names.
type LockFilter struct {
	Match string // a part of the name, in any case of letters; "" for all
	After string // the page begins behind this name
	Limit int    // how many it has at most, but for further ones of the last name; 0 is all
}

// LockList is a page of locks.
type LockList struct {
	Locks []LockView
	Next  string // After of the next page; "" for the last one
}

// lockMargin is by how much a holder is told before Redis gives its lock away.
const lockMargin = time.Second

// locks is the driver of the locks beside the jobs, and what takes them.
func (c *Client) locks() (*redislock.Driver, *locking.Locker) {
	driver := redislock.NewDriver(c.client, redislock.Config{Namespace: c.namespace})
	return driver, locking.New(driver, locking.Config{Margin: lockMargin})
}

// ListLocks lists what is held: the locks of package redislock, and the leases of runs. It looks at the name of every key in Redis, a
// thousand at a time. What could be read comes beside an UnreachableError. It returns ErrRefused for a negative limit.
func (c *Client) ListLocks(ctx context.Context, f LockFilter) (LockList, error) {
	if f.Limit < 0 {
		return LockList{}, fmt.Errorf("%w: list locks: a limit of %d; use 0 for all", ErrRefused, f.Limit)
	}
	limit := f.Limit
	if limit == 0 {
		limit = maxInt
	}
	driver, locker := c.locks()
	defer locker.Close()
	read := limit
	if f.Match != "" {
		read = maxInt // what does not match takes no place on the page
	}
	found, more, unread := driver.List(ctx, f.After, read)
	leases, err := c.leasesNamed(ctx, "")
	if unread = errors.Join(unread, err); unread != nil && len(found)+len(leases) == 0 && !errors.As(err, new(*UnreachableError)) {
		return LockList{}, unread
	} // else what could be read comes beside it
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
	list := LockList{Locks: all[:shown]}
	if (more || shown < len(all)) && shown > 0 {
		list.Next = all[shown-1].Name
	}
	return list, unread
}

// matches reports whether a name has a part, in any case of letters.
func matches(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

const maxInt = int(^uint(0) >> 1)

// GetLock finds what is held by a name, a lock before the leases of runs. The others are in Also, those of a semaphore too. It returns ErrUnknownLock when
// nobody holds anything by that name, and a locking.InputError for a name that no lock can have.
func (c *Client) GetLock(ctx context.Context, name string) (LockView, error) {
	held, err := c.named(ctx, name)
	if len(held) == 0 {
		return LockView{}, cmp.Or(err, fmt.Errorf("lock %q: %w; `locks list` shows what is held", name, ErrUnknownLock))
	}
	held[0].Also = held[1:]
	return held[0], err
}

// named is everything that is held by a name, the lock's holders first. Beside an error stands what could be read of it.
func (c *Client) named(ctx context.Context, name string) ([]LockView, error) {
	_, locker := c.locks()
	defer locker.Close()
	holders, err := locker.Holders(ctx, name)
	if err != nil {
		return nil, err
	}
	var held []LockView
	for _, o := range holders {
		held = append(held, lockView(o))
	}
	leases, err := c.leasesNamed(ctx, name)
	return append(held, leases...), err
}

// leasesNamed are those of the runs of a job, or of one of its shards, or with "" of all runs. None when there is no such job.
func (c *Client) leasesNamed(ctx context.Context, name string) ([]LockView, error) {
	job, _, _ := strings.Cut(name, "#") // which is in no job's name
	views, err := c.Leases(ctx, job)
	if errors.Is(err, ErrUnknownJob) || errors.Is(err, ErrUnknownNamespace) {
		return nil, nil
	}
	var found []LockView
	for _, v := range views {
		if name == job || v.Name == name {
			found = append(found, LockView{Name: v.Name, Kind: RunKind, Owner: v.Run, Token: v.Token, TTLMS: v.TTLMS, Node: v.Node, Run: v.Run})
		}
	}
	return found, err
}

func lockView(o locking.Ownership) LockView {
	mode := ""
	if o.Share.Mode != locking.Exclusive {
		mode = o.Share.Mode.String()
	}
	return LockView{
		Permits: o.Share.Permits, Mode: mode,
		Name: o.Name, Kind: LockKind, Owner: o.Owner, Holder: o.Holder, Token: strconv.FormatInt(o.Token, 10),
		TTLMS: max(0, o.Left).Milliseconds(), Waiters: o.Waiters, Revoked: o.Revoked,
	}
}

// Who names a holder with its token.
func (l LockView) Who() string {
	if l.Kind == RunKind {
		return fmt.Sprintf("run %s on %s with token %s", l.Run, cmp.Or(l.Node, "an unnamed node"), l.Token)
	}
	return fmt.Sprintf("%s with token %s", cmp.Or(l.Holder, "owner "+l.Owner), l.Token)
}

// Left is how much longer the lease lasts, unless it is renewed.
func (l LockView) Left() time.Duration { return redisconn.Duration(l.TTLMS, time.Millisecond) }
