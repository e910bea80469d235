package ops

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/inspect"
)

// LastSuccess reads when runs of some jobs last succeeded, by the job's name. Jobs without a
// success and unknown jobs are left out. It is JobView.LastSuccess for many jobs, in a few calls.
// With an error, the readable successes are returned too. A client over HTTP returns ErrRedisOnly;
// JobView has the time.
func (c *Client) LastSuccess(ctx context.Context, names ...string) (map[string]time.Time, error) {
	if c.conn == nil {
		return nil, ErrRedisOnly
	}
	l, err := c.conn.open(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := l.Named(ctx, names)
	if err != nil {
		return nil, err
	}
	latest, unread, err := inspect.ReadLatest(ctx, l, stored, func(string) bool { return false })
	at := make(map[string]time.Time, len(latest))
	for name, of := range latest {
		if of.Success != 0 {
			at[name] = time.UnixMilli(of.Success).UTC()
		}
	}
	return at, errors.Join(append(unread, err)...)
}
