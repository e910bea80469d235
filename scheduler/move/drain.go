package move

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

const (
	defaultDrain = 30 * time.Second
	lookEvery    = 200 * time.Millisecond
	// steadyEnough is by how much Redis' clock may stray from this machine's while it counts as
	// steady, beyond the uncertainty of the round trips.
	steadyEnough = 100 * time.Millisecond
)

// drain waits until nothing runs. It reaps lapsed leases itself, because all nodes may be gone.
func (m *Mover) drain(ctx context.Context, from side, o SealOptions) error {
	end := time.Now().Add(cmp.Or(o.Drain, defaultDrain))
	w := watch{side: from, skew: m.cfg.MaxSkew, seen: make(map[string]seenLease)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		running, err := export.Running(ctx, from.led)
		if err != nil || len(running) == 0 {
			return err
		}
		if o.CancelRunning {
			if err := m.cancel(ctx, from, running); err != nil {
				return err
			}
			o.CancelRunning = false
		}
		if err := w.reap(ctx, running); err != nil {
			return err
		}
		if !time.Now().Before(end) {
			return still(ctx, from)
		}
		timer.Reset(lookEvery)
	}
}

// cancel orders the nodes to end their runs. A run that has ended meanwhile is skipped.
func (m *Mover) cancel(ctx context.Context, from side, running []ledger.Run) error {
	for _, l := range running {
		_, err := operate.Cancel(ctx, from.led, l.Job, l.ID, "move", "the namespace moves to "+m.cfg.ToName)
		if err != nil && !errors.Is(err, ledger.ErrRefused) && !errors.Is(err, ledger.ErrUnknownRun) {
			return err
		}
	}
	return nil
}

// watch reaps lapsed leases as nodes do: only leases whose beat stood still while Redis' clock ran
// steadily for their ttl.
type watch struct {
	side side
	skew time.Duration
	seen map[string]seenLease

	servers []string      // ids of the masters, by partition
	steady  time.Time     // since when the clock has run steadily
	lo, hi  time.Duration // how far it is ahead of this machine's, from and to
}

// seenLease is a lease as it was first seen with this beat.
type seenLease struct {
	beat int64
	at   time.Time
}

// look reads Redis' clock, and notes whether it still runs as it did.
func (w *watch) look(ctx context.Context) (now time.Time, err error) {
	sent := time.Now()
	now, _, err = w.side.led.Time(ctx)
	if err != nil {
		return now, err
	}
	hi, lo := now.Sub(sent), time.Until(now)
	servers, _ := epoch.Identities(ctx, w.side.led, w.servers)
	if w.steady.IsZero() || !slices.Equal(servers, w.servers) || lo > w.hi+steadyEnough || hi < w.lo-steadyEnough {
		w.steady, w.lo, w.hi, w.servers = sent, lo, hi, servers
	}
	w.lo, w.hi = max(w.lo, min(lo, w.hi)), min(w.hi, max(hi, w.lo))
	return now, nil
}

func (w *watch) reap(ctx context.Context, running []ledger.Run) error {
	now, err := w.look(ctx)
	if err != nil {
		return err
	}
	local := time.Now()
	for _, l := range running {
		before, known := w.seen[l.ID]
		if !known || before.beat != l.Beat || before.at.Before(w.steady) {
			w.seen[l.ID] = seenLease{beat: l.Beat, at: local}
			continue
		}
		if l.Until >= now.UnixMilli() || local.Sub(before.at) < redisconn.Duration(l.TTL, time.Millisecond) {
			continue
		}
		if _, err := settle.Reap(ctx, w.side.led, now.UnixMilli(), w.servers[w.side.led.Partition(l.Job)], []ledger.Run{l}); err != nil && !errors.Is(err, ledger.ErrClock) {
			return err
		}
	}
	return nil
}
