package lane

import (
	"context"
	"errors"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// masterCalls are the calls of one sweep. failed is the error of calls to the sweep's own master.
type masterCalls struct {
	home   *link
	links  links
	failed error
}

// ask calls a job's master; a later sweep repeats a call that failed. Nothing is sent to a master
// that is unreachable, nor to the sweep's own after a call of this sweep was not answered.
func (c *masterCalls) ask(ctx context.Context, job string, f func(context.Context) error) {
	part := c.home.ledger.Partition(job)
	to := c.links(part)
	if ctx.Err() != nil || to.breaker.open() || to.epochs.Blocks(part) || to == c.home && errors.Is(c.failed, locking.ErrUnreachable) {
		return
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	err := f(call)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		to.breaker.Fail(roleSweep, err)
	}
	if to == c.home {
		c.failed = errors.Join(c.failed, err)
	}
}
