package cronlock

import (
	"context"
	"errors"
	"log/slog"

	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
)

// entry is the job that the cron starts in place of the user's job.
type entry struct {
	name    string
	lock    string
	run     func(ctx context.Context, run Run)
	cfg     Config
	locker  *locking.Locker
	entries func() []cron.Entry // of the cron
	mark    mark
	log     *slog.Logger
}

// Run implements cron.Job: it claims the entry's tick, and runs the job if the claim is granted.
func (e *entry) Run() {
	t, ok := e.tick() // first: the cron goes on to the next tick
	if !ok {
		e.log.Warn("cron job not run: it was called outside of a tick")
		return
	}
	log := e.log.With("tick", t.at.UTC())
	ctx := context.Background() // a cron has none
	if err := e.mark.claim(ctx, t, 0); err != nil {
		report(ctx, log, err)
		return
	}
	lease, err := e.locker.Acquire(ctx, e.lock, e.cfg.Lock)
	if err != nil {
		report(ctx, log, err)
		return
	}
	defer func() {
		if err := lease.Release(ctx); err != nil {
			log.Warn("the lock of a cron entry was lost while its job ran, or is not released", "error", err)
		}
	}()
	if err := e.mark.claim(lease.Context(), t, lease.Token()); err != nil {
		report(ctx, log, err)
		return
	}
	if !lease.Valid() {
		log.Error("cron tick claimed, and not run: the lease was lost before the job began")
		return
	}
	run := Run{Name: e.name, Tick: t.at.UTC(), Token: lease.Token()}
	cron.NewChain(e.cfg.Chain...).Then(cron.FuncJob(func() { e.run(lease.Context(), run) })).Run()
}

// tick returns the tick for which the cron started this call: the cron sets Prev before it answers Entries. It is false
// when the cron has started none, or does not have the entry any more.
func (e *entry) tick() (tick, bool) {
	for _, c := range e.entries() {
		if c.WrappedJob != cron.Job(e) {
			continue
		}
		t := tick{at: c.Prev, due: c.Prev}
		if s, is := c.Schedule.(cron.ConstantDelaySchedule); is {
			t.every = s.Delay
			t.at = c.Prev.Truncate(s.Delay)
		}
		return t, !c.Prev.IsZero()
	}
	return tick{}, false
}

// report logs why a tick does not run here.
func report(ctx context.Context, log *slog.Logger, err error) {
	switch {
	case errors.Is(err, errClaimed):
		log.DebugContext(ctx, "cron tick not run: it was claimed before, or a later one was", "error", err)
	case errors.Is(err, locking.ErrHeld):
		log.InfoContext(ctx, "cron tick not run here: the lock of its entry is held", "error", err)
	default:
		log.ErrorContext(ctx, "cron tick not run", "error", err)
	}
}

var _ cron.Job = (*entry)(nil)
