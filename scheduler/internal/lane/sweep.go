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
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sweep looks, on every node, for what is overdue: it hands late cursors and pending runs to the
// agenda, reaps leases that lapsed, ends runs that somebody wants ended, brings word to jobs that
// follow others, and puts off orphans.
type sweep struct {
	n       *Lane
	gaze    *ledger.Gaze
	seen    map[string]sighting // lapsed leases, by run
	writes  map[int]writes      // by partition of a Cluster
	orphans map[string]orphan   // jobs that nobody alive holds

	failed  error // what this sweep asked and was not answered
	probes  sync.WaitGroup
	probing atomic.Bool // a probe is under way

	strange, unreaped Strangers
	saidFull          time.Time // that a follower cannot be told

	told       told
	waited     map[string]unheldSince // followers that nobody alive holds as they are stored, for half a minute after the ledger said so
	saidUnheld map[string]time.Time   // followers that nobody alive holds: when it was said
}

func newSweep(n *Lane) *sweep {
	return &sweep{n: n, gaze: n.Ledger.NewGaze(), seen: make(map[string]sighting), writes: make(map[int]writes), orphans: make(map[string]orphan), saidUnheld: make(map[string]time.Time), waited: make(map[string]unheldSince),
		strange: Strangers{Log: n.Log}, unreaped: Strangers{Log: n.Log}}
}

// sweepPause is how long a sweep waits that was asked for out of its turn, so that many who ask are one.
const sweepPause = 50 * time.Millisecond

// run sweeps until ctx ends, beginning at a point of the period that the node's id chooses, so
// that nodes do not sweep together. From then until alive ends it only looks for runs to cancel.
func (s *sweep) run(ctx, alive context.Context) {
	defer s.probes.Wait()
	wait.For(ctx, wait.Spread(s.n.ID+" sweep", time.Now(), s.n.SweepEvery))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.n.SweepEvery) // a ticker's next tick could meet the end of a call in the same instant
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
		case <-s.n.Sweep:
			wait.For(alive, sweepPause)
		case <-timer.C:
		}
	}
}

// cancelled looks for runs to cancel and nothing else.
func (s *sweep) cancelled(alive context.Context) {
	if s.n.Slots.Used() == 0 {
		return
	}
	call, cancel := context.WithTimeout(alive, CallTimeout)
	defer cancel()
	found, err := s.n.Ledger.Cancels(call)
	if err != nil && alive.Err() == nil {
		s.n.quiet.fail(roleSweep, err)
	}
	for _, c := range found {
		s.n.Runs.Cancelled(c)
	}
}

// probe asks the masters of quiet partitions whether they answer again, and those of unconfirmed ones whether their replicas do,
// beside the sweep, which is not to wait for them.
func (s *sweep) probe(ctx context.Context, silent, unconfirmed []int) {
	if len(silent)+len(unconfirmed) == 0 || s.probing.Swap(true) {
		return
	}
	s.probes.Go(func() {
		defer s.probing.Store(false)
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			heard, err := s.n.Ledger.Heard(call, silent)
			if err != nil && ctx.Err() == nil {
				s.n.quiet.fail(roleSweep, err, without(silent, heard)...)
			}
			if len(heard) > 0 {
				s.n.quiet.ok(roleSweep, heard...)
			}
		})
		both.Go(func() {
			confirmed, err := s.n.Ledger.Confirmed(call, unconfirmed)
			s.n.quiet.confirmed(confirmed...)
			if err != nil && ctx.Err() == nil {
				s.n.quiet.unconfirmed(err, without(unconfirmed, confirmed)...)
			}
		})
		both.Wait()
	})
}

// without is what is in all and not in some.
func without(all, some []int) []int {
	return slices.DeleteFunc(slices.Clone(all), func(p int) bool { return slices.Contains(some, p) })
}

// look looks at some partitions, all when there are none, and says which of those that have names answered; false when none did.
func (s *sweep) look(ctx context.Context, now int64, parts []int) (found ledger.Finding, heard []int, some bool) {
	found, err := s.gaze.Look(ctx, now, s.n.Grace.Milliseconds(), parts...)
	if err == nil {
		return found, parts, true
	}
	silent, left := parts, (*ledger.UnheardError)(nil)
	if errors.As(err, &left) {
		silent = left.Parts
	}
	if !errors.Is(err, locking.ErrUnreachable) {
		s.failed, silent = err, nil
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		s.n.quiet.fail(roleSweep, err, silent...)
	}
	heard = without(parts, silent)
	return found, heard, len(heard) > 0
}

// ask asks something of a job's partition, which a later sweep does again if it fails. It does not while the partition is
// quiet, nor, of one Redis, when it has not answered this sweep before.
func (s *sweep) ask(ctx context.Context, job string, f func() error) {
	part := s.n.Ledger.Partition(job)
	if s.n.quiet.of(part) || s.n.failover.holds(part) || errors.Is(s.failed, locking.ErrUnreachable) && !s.n.Ledger.Clustered() {
		return
	}
	err := f()
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		s.n.quiet.fail(roleSweep, err, part)
	}
	s.failed = errors.Join(s.failed, err)
}

func (s *sweep) once(ctx context.Context) {
	if s.n.Clock.Usable() != nil || s.n.failover.holding() != nil {
		return
	}
	heard, silent, unconfirmed := s.n.quiet.split()
	s.probe(ctx, silent, unconfirmed)
	heard = slices.DeleteFunc(heard, s.n.failover.holds)
	if len(heard) == 0 && s.n.quiet.apart {
		return
	}
	call, cancel := context.WithTimeout(ctx, 2*s.n.MaxSkew)
	defer cancel()
	now := s.n.Clock.Now().UnixMilli()
	s.failed = nil
	found, heard, some := s.look(call, now, heard)
	if !some {
		return
	}
	s.n.watchdog.sweep(call, found)
	s.strange.Note(found.Foreign, "records in the ledger")
	for _, c := range found.Cancels {
		s.n.Runs.Cancelled(c)
	}
	found.Late = s.held(call, found.Late, now)
	if len(found.Late)+len(found.Pending) > 0 {
		s.n.Inbox.Tell(agenda.Found{Finding: found})
	}
	s.reap(call, s.ripe(call, found.Lapsed))
	s.relay(call, found.Events, now)
	if s.failed == nil {
		s.n.quiet.ok(roleSweep, heard...)
	}
}

// reap settles runs as abandoned and says so.
func (s *sweep) reap(ctx context.Context, ripe []ledger.Lease) {
	foreign := 0
	byPart := make(map[int][]ledger.Lease)
	for _, l := range ripe {
		p := s.n.Ledger.Partition(l.Job)
		byPart[p] = append(byPart[p], l)
	}
	for _, p := range slices.Sorted(maps.Keys(byPart)) {
		for batch := range slices.Chunk(byPart[p], ledger.BatchMax) {
			s.ask(ctx, batch[0].Job, func() error {
				words, err := s.n.Ledger.Reap(ctx, s.n.Clock.Now().UnixMilli(), s.n.Clock.Server(), batch)
				if err == nil {
					foreign += s.reaped(batch, words)
				}
				return err
			})
			if errors.Is(s.failed, ledger.ErrClock) {
				s.n.Resample(ctx)
				return
			}
		}
	}
	s.unreaped.Note(foreign, "entries or histories of jobs whose runs have lapsed")
}

// reaped says which runs were abandoned, tells the agenda that their jobs are free, and returns how many records
// are not understood.
func (s *sweep) reaped(batch []ledger.Lease, words []ledger.Word) (foreign int) {
	var free []*work.Job
	for i, l := range batch {
		switch words[i] {
		case ledger.Reaped:
			delete(s.seen, l.Run)
			if j := s.n.Jobs.Named(l.Job); j != nil {
				free = append(free, j)
			}
			s.n.Log.Warn("run abandoned: its lease lapsed and its node did not come back in time", "job", l.Job,
				"tick", time.UnixMilli(l.Tick).UTC(), "run", l.Run, "node", l.NodeName, "token", l.Token)
			s.n.Listener.Abandoned(l)
		case ledger.Strange:
			foreign++
			s.n.watchdog.leave(l.Run)
		default: // renewed or ended meanwhile
		}
	}
	if len(free) > 0 {
		s.n.Inbox.Tell(agenda.Reaped{Jobs: free})
	}
	return foreign
}
