package ops

import (
	"cmp"
	"context"
	"strconv"
)

var rowLocks = read("locks", "the locks, and the leases of runs, by name", listLocks)

// ListLocks lists the locks of package redislock, and the leases of runs. It reads the name of
// every key in Redis, a thousand at a time. With an UnreachableError, the readable locks are
// returned too. It returns ErrRefused for a negative limit.
func (c *Client) ListLocks(ctx context.Context, f LockFilter) (Page[LockView], error) {
	return call(ctx, c, rowLocks, f)
}

var rowLock = read("locks/{name}", "what is held by a name", byName(getLock))

// GetLock finds the lock of a name, or else a lease of a run. Further grants are in Also, a
// semaphore's too. It returns ErrUnknownLock when the name has no lock and no lease, and a
// locking.InputError for a name that no lock can have.
func (c *Client) GetLock(ctx context.Context, name string) (LockView, error) {
	return call(ctx, c, rowLock, Named{name})
}

type releaseIn struct {
	Named
	Token int64 `json:"token,string"` // the number of the grant that is to end
	ReleaseOptions
}

var rowRelease = &Operation[releaseIn, Release]{
	Info: Info{Method: "POST", Path: "locks/{name}/release", Role: Operator, Audit: "locks release", Summary: "ask the holder of a lock to end, by its token"},
	do: func(ctx context.Context, c *conn, in releaseIn) (Release, error) {
		if in.Token <= 0 {
			return Release{}, &InputError{"token is " + strconv.FormatInt(in.Token, 10) + "; it must be the number of the grant that is to end, as a string"}
		}
		if c.actor != nil {
			in.Holder = cmp.Or(in.Holder, "released over the API by "+c.actor.Name)
		}
		return releaseLock(ctx, c, in.Name, in.Token, in.ReleaseOptions)
	},
	note: func(in releaseIn, _ Release) Action {
		detail := "token " + strconv.FormatInt(in.Token, 10)
		if in.Force {
			detail += ", by force"
		}
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: detail}
	},
}

// ReleaseLock ends one grant of a lock, or of a run's lease, by its token, so that no other grant
// is ended by mistake. It does not wait for the end; GetLock shows it. It returns ErrUnknownLock
// when the name has no lock and no lease, and ErrRefused when another grant holds it, or for a
// run's lease with Force.
func (c *Client) ReleaseLock(ctx context.Context, name string, token int64, o ReleaseOptions) (Release, error) {
	return call(ctx, c, rowRelease, releaseIn{Named{name}, token, o})
}

// Leases lists the leases of running runs, by name and then by token: of one job, or with "" of
// all. Pending runs have none. It returns ErrUnknownJob for an unknown job, and ErrUnknownNamespace
// when no node has ever run in the namespace. With an UnreachableError, the reachable partitions'
// leases are returned too. A client over HTTP returns ErrRedisOnly; ListLocks has the leases too.
func (c *Client) Leases(ctx context.Context, job string) ([]LeaseView, error) {
	if c.conn == nil {
		return nil, ErrRedisOnly
	}
	return leases(ctx, c.conn, job)
}
