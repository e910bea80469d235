package move

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// cut fails one call of the clients that it hooks: before it is sent, or after it was carried out. It also remembers the
// scripts that were called.
type cut struct {
	mu    sync.Mutex
	calls int
	at    int // 0 for none
	after bool
	hit   bool
	wrote bool // the call that was cut could write
	sent  []sent
}

type sent struct {
	client redis.UniversalClient
	args   []any
}

func (c *cut) arm(at int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at, c.after, c.hit, c.wrote, c.sent = 0, at, after, false, false, nil
}

func (c *cut) call(client redis.UniversalClient, cmds []redis.Cmder, next func() error) error {
	c.mu.Lock()
	c.calls++
	hit := c.calls == c.at
	c.hit = c.hit || hit
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.sent = append(c.sent, sent{client, cmd.Args()})
			c.wrote = c.wrote || hit
		}
	}
	c.mu.Unlock()
	if hit && !c.after {
		return errCut
	}
	err := next()
	if hit {
		return errCut
	}
	return err
}

// cutHook is the cut at one client.
type cutHook struct {
	*cut
	client redis.UniversalClient
}

func (h cutHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h cutHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := h.call(h.client, []redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
		if errors.Is(err, errCut) {
			cmd.SetErr(err)
		}
		return err
	}
}

func (h cutHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := h.call(h.client, cmds, func() error { return next(ctx, cmds) })
		if errors.Is(err, errCut) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}
