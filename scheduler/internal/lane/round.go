package lane

import (
	"context"
	"errors"

	"github.com/escapement/escapement/locking"
)

// round is the calls of one sweep. failed is what the lane's own master did not answer.
type round struct {
	l      *Lane
	failed error
}

// ask calls a job's master; a later sweep repeats a call that failed. Nothing is sent to a master
// that is unreachable, nor to the lane's own after a call of this sweep was not answered.
func (r *round) ask(ctx context.Context, job string, f func(context.Context) error) {
	part := r.l.Ledger.Partition(job)
	of := r.l.lanes.of(part)
	if ctx.Err() != nil || of.breaker.open() || of.epochs.holds(part) || of == r.l && errors.Is(r.failed, locking.ErrUnreachable) {
		return
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	err := f(call)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		of.fail(roleSweep, err)
	}
	if of == r.l {
		r.failed = errors.Join(r.failed, err)
	}
}
