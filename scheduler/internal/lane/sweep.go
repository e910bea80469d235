package lane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sweep looks, on every node, for what is overdue in a lane's partitions: it hands late cursors and pending runs to the
// agenda, reaps leases that lapsed, ends runs that somebody wants ended, brings word to jobs that
// follow others, and puts off jobs that no living node can run.
type sweep struct {
	round
	gaze   *ledger.Scanner
	seen   map[string]lapsedLease // lapsed leases, by run
	writes writes                 // of a master of a Cluster

	relay             *relay
	noNode            map[string]noNode    // jobs that no living node can run
	looked            map[string]time.Time // overdue jobs that some node can run, and when that was seen
	beside            sync.WaitGroup       // of what the sweep does not wait for
	probing, relaying atomic.Bool          // that is under way

	strange, unreaped UnknownFormats
}

func newSweep(l *Lane) *sweep {
	return &sweep{
		round: round{l: l}, gaze: l.Ledger.NewScanner(), seen: make(map[string]lapsedLease), relay: newRelay(l), noNode: make(map[string]noNode), looked: make(map[string]time.Time),
		strange: UnknownFormats{Log: l.Log}, unreaped: UnknownFormats{Log: l.Log},
	}
}

// sweepPause is how long a sweep waits that was asked for out of its turn, so that many who ask are one.
const sweepPause = 50 * time.Millisecond

// run sweeps until ctx ends, beginning at a point of the period that the node's id chooses, so
// that nodes do not sweep together. From then until alive ends it only looks for runs to cancel.
func (s *sweep) run(ctx, alive context.Context) {
	defer s.beside.Wait()
	wait.For(ctx, wait.Spread(s.l.ID+" sweep"+s.l.addr, time.Now(), s.l.SweepEvery))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.l.SweepEvery) // a ticker's next tick could meet the end of a call in the same instant
		if ctx.Err() == nil {
			s.once(ctx)
		} else {
			s.cancelled(alive)
		}
		select {
		case <-timer.C: // it comes first when both are there, or a simulation would not be the same twice
			continue
		default:
		}
		select {
		case <-alive.Done():
			return
		case <-s.l.sweep:
			wait.For(alive, sweepPause)
		case <-timer.C:
		}
	}
}

// cancelled looks for runs to cancel and nothing else.
func (s *sweep) cancelled(alive context.Context) {
	parts := s.l.failover.parts()
	if s.l.Slots.Used() == 0 || len(parts) == 0 {
		return
	}
	call, cancel := context.WithTimeout(alive, CallTimeout)
	defer cancel()
	found, err := s.l.Ledger.Cancels(call, parts...)
	if err != nil && alive.Err() == nil {
		s.l.fail(roleSweep, err)
	}
	for _, c := range found {
		s.l.Runs.Cancelled(c)
	}
}

// probe asks a master that did not answer whether it does now.
func (s *sweep) probe(ctx context.Context, part int) {
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := s.l.Ledger.Answers(call, part); err == nil {
		s.l.breaker.ok(roleSweep)
	} else if ctx.Err() == nil {
		s.l.fail(roleSweep, err)
	}
}

// confirm asks, beside the sweep, which is not to wait for them, whether replicas have again what the master grants.
func (s *sweep) confirm(ctx context.Context, part int) {
	if !s.l.breaker.isUnconfirmed() || s.probing.Swap(true) {
		return
	}
	s.beside.Go(func() {
		defer s.probing.Store(false)
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		if err := s.l.Ledger.Confirmed(call, part); err == nil || ctx.Err() == nil {
			s.l.breaker.unsure(err)
		}
	})
}

// round is what a lane asks in one sweep, and failed what its own master did not answer.
type round struct {
	l      *Lane
	failed error
}

// ask asks something of a job's partition, which a later sweep does again if it fails. It does not while the partition's master is
// unreachable, nor, when that is the lane's own, when it has not answered this sweep before.
func (r *round) ask(ctx context.Context, job string, f func(context.Context) error) {
	part := r.l.Ledger.Partition(job)
	of := r.l.lanes.of(part)
	if ctx.Err() != nil || of.breaker.open() || of.failover.holds(part) || of == r.l && errors.Is(r.failed, locking.ErrUnreachable) {
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

func (s *sweep) once(ctx context.Context) {
	l := s.l
	parts := l.failover.parts()
	if len(parts) > 0 && l.breaker.open() {
		s.probe(ctx, parts[0])
	}
	parts = slices.DeleteFunc(parts, l.failover.holds)
	if l.Clock.Usable() != nil || len(parts) == 0 || l.breaker.open() {
		return
	}
	s.confirm(ctx, parts[0])
	call, cancel := context.WithTimeout(ctx, 2*l.MaxSkew)
	defer cancel()
	now := l.Clock.Now().UnixMilli()
	found, err := s.gaze.Scan(call, now, l.Grace.Milliseconds(), parts...)
	if left := (*ledger.UnreachableError)(nil); errors.As(err, &left) && redisconn.OfSlot(left.Err) { // one that moves hides no other
		parts, err = slices.DeleteFunc(parts, func(p int) bool { return slices.Contains(left.Parts, p) }), nil
	}
	if s.failed = err; err != nil {
		if !errors.Is(call.Err(), context.Canceled) {
			l.fail(roleSweep, err)
		}
		return
	}
	l.lanes.cursors.overdue(l.Jobs, found.Late, now)
	l.watchdog.sweep(call, found)
	s.strange.Note(found.Foreign, "records in the ledger")
	for _, c := range found.Cancels {
		l.Runs.Cancelled(c)
	}
	found.Late = s.runnable(call, found.Late, now)
	if len(found.Late)+len(found.Pending) > 0 {
		l.Inbox.Send(agenda.Found{ScanResult: found, Parts: parts})
	}
	s.reap(call, s.ripe(call, found.Lapsed))
	s.tell(ctx, call, found.Events, now)
	if s.failed == nil {
		l.breaker.ok(roleSweep)
	}
}

// tell brings word of ticks to the jobs that follow. On a Cluster these may live at other masters, which the sweep is not to wait for.
func (s *sweep) tell(ctx, call context.Context, events []ledger.Event, now int64) {
	if !s.l.apart {
		s.relay.bring(call, &s.round, events, now)
		return
	}
	if len(events) == 0 || s.relaying.Swap(true) {
		return
	}
	s.beside.Go(func() {
		defer s.relaying.Store(false)
		s.relay.bring(ctx, &round{l: s.l}, events, now)
	})
}

// reap settles runs as abandoned and says so.
func (s *sweep) reap(ctx context.Context, ripe []ledger.Lease) {
	foreign := 0
	byPart := make(map[int][]ledger.Lease)
	for _, l := range ripe {
		p := s.l.Ledger.Partition(l.Job)
		byPart[p] = append(byPart[p], l)
	}
	for _, p := range slices.Sorted(maps.Keys(byPart)) {
		for batch := range slices.Chunk(byPart[p], ledger.BatchMax) {
			s.ask(ctx, batch[0].Job, func(ctx context.Context) error {
				server, may := s.l.failover.claims(p)
				if !may {
					return nil // the next sweep looks again
				}
				words, err := s.l.Ledger.Reap(ctx, s.l.Clock.Now().UnixMilli(), server, batch)
				if err == nil {
					foreign += s.reaped(batch, words)
				}
				return err
			})
			if errors.Is(s.failed, ledger.ErrClock) {
				s.l.lanes.Resample(ctx)
				return
			}
		}
	}
	s.unreaped.Note(foreign, "entries or histories of jobs whose runs have lapsed")
}

// reaped says which runs were abandoned, tells the agenda that their jobs are free, and returns how many records
// are not understood.
func (s *sweep) reaped(batch []ledger.Lease, words []ledger.Status) (foreign int) {
	var free []*work.Job
	for i, l := range batch {
		switch words[i] {
		case ledger.Reaped:
			delete(s.seen, l.Run)
			if j := s.l.Jobs.Named(l.Job); j != nil {
				free = append(free, j)
			}
			s.l.Log.Warn("run abandoned: its lease lapsed and its node did not come back in time", "job", l.Job,
				"tick", time.UnixMilli(l.Tick).UTC(), "run", l.Run, "node", l.NodeName, "token", l.Token)
			s.l.Listener.Abandoned(l)
		case ledger.Strange:
			foreign++
			s.l.watchdog.leave(l.Run)
		default: // renewed or ended meanwhile
		}
	}
	if len(free) > 0 {
		s.l.Inbox.Send(agenda.Reaped{Jobs: free})
	}
	return foreign
}
