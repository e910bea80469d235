package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sweep looks on every node for work in a lane's partitions that nobody does. It hands late ticks
// and pending runs to the agenda, reaps lapsed leases, cancels runs, notifies jobs that follow
// others, and postpones jobs that no living node can run.
type sweep struct {
	round
	scanner *ledger.Scanner
	seen    map[string]lapsedLease // lapsed leases, by run
	writes  writes                 // of a Cluster's master

	lacking           map[int]lacking // by partition, as the last sweep found them
	relay             *relay
	joins             []string             // jobs whose old ticks are to be given up, see giveUpJoins
	joinsListed       time.Time            // when joins was filled
	noNode            map[string]noNode    // jobs that no living node can run
	hasNode           map[string]time.Time // when an overdue job was last seen to have a node that can run it
	background        sync.WaitGroup       // calls for which the sweep does not wait
	probing, relaying atomic.Bool          // such a call is under way

	unknown, unknownLapsed UnknownFormats
}

func newSweep(l *Lane) *sweep {
	return &sweep{
		round: round{l: l}, scanner: l.Ledger.NewScanner(), seen: make(map[string]lapsedLease), lacking: make(map[int]lacking), relay: newRelay(l), noNode: make(map[string]noNode), hasNode: make(map[string]time.Time),
		unknown: UnknownFormats{Log: l.Log}, unknownLapsed: UnknownFormats{Log: l.Log},
	}
}

// sweepPause is how long an early sweep waits, so that many requests make one.
const sweepPause = 50 * time.Millisecond

// run sweeps until ctx ends. It starts at a point of the period that depends on the node's id, so
// that nodes do not sweep together. From then until alive ends it only looks for runs to cancel.
func (s *sweep) run(ctx, alive context.Context) {
	defer s.background.Wait()
	wait.For(ctx, wait.Spread(s.l.ID+" sweep"+s.l.addr, time.Now(), s.l.SweepEvery))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.l.SweepEvery) // with a ticker, the next tick and the end of a call could meet in one instant
		if ctx.Err() == nil {
			s.once(ctx)
		} else {
			s.cancelled(alive)
		}
		select {
		case <-timer.C: // the timer comes first when both are ready, so that a simulation repeats itself
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
	parts := s.l.epochs.parts()
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

// confirm asks whether replicas confirm the master's writes again. The sweep does not wait for the
// answer.
func (s *sweep) confirm(ctx context.Context, part int) {
	if !s.l.breaker.isUnconfirmed() || s.probing.Swap(true) {
		return
	}
	s.background.Go(func() {
		defer s.probing.Store(false)
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		if err := s.l.Ledger.Confirmed(call, part); err == nil || ctx.Err() == nil {
			s.l.breaker.setConfirmed(err)
		}
	})
}

func (s *sweep) once(ctx context.Context) {
	l := s.l
	parts := l.epochs.parts()
	if len(parts) > 0 && l.breaker.open() {
		s.probe(ctx, parts[0])
	}
	parts = slices.DeleteFunc(parts, l.epochs.holds)
	if l.Clock.Usable() != nil || len(parts) == 0 || l.breaker.open() {
		return
	}
	s.confirm(ctx, parts[0])
	s.failed = nil
	l.feeder.feed(ctx, &s.round)
	call, cancel := context.WithTimeout(ctx, 2*l.MaxSkew)
	defer cancel()
	now := l.Clock.Now().UnixMilli()
	found, err := s.scanner.Scan(call, now, l.Grace.Milliseconds(), parts...)
	if left := (*ledger.UnreachableError)(nil); errors.As(err, &left) && redisconn.OfSlot(left.Err) { // a partition that moves hides no other
		parts, err = slices.DeleteFunc(parts, func(p int) bool { return slices.Contains(left.Parts, p) }), nil
	}
	if err != nil {
		s.failed = errors.Join(s.failed, err)
		if !errors.Is(call.Err(), context.Canceled) {
			l.fail(roleSweep, err)
		}
		return
	}
	s.checkRecords(call, found)
	l.breaker.answered() // before the agenda asks whose turn it is: turns start anew after an outage
	l.lanes.cursors.overdue(l.Jobs, found.Late, now)
	l.watchdog.sweep(call, found)
	l.feeder.seen(found.Backfills)
	s.unknown.Note(found.Foreign, "records in the ledger")
	for _, c := range found.Cancels {
		l.Runs.Cancelled(c)
	}
	found.Late = s.dropUnrunnable(call, found.Late, now)
	l.noNodes.Store(int64(s.countNoNode(now)))
	if len(found.Late)+len(found.Pending) > 0 {
		l.Inbox.Send(agenda.Found{ScanResult: found, Parts: parts})
	}
	s.reap(call, s.reapable(call, found.Lapsed))
	s.notifyFollowers(ctx, call, found.Events, now)
	s.giveUpJoins(call)
	if s.failed == nil {
		l.breaker.ok(roleSweep)
	}
}

// notifyFollowers notifies jobs that follow. On a Cluster they may have other masters, for which the sweep
// does not wait.
func (s *sweep) notifyFollowers(ctx, call context.Context, events []ledger.Event, now int64) {
	if !s.l.clustered {
		s.relay.deliver(call, &s.round, events, now)
		return
	}
	if len(events) == 0 || s.relaying.Swap(true) {
		return
	}
	s.background.Go(func() {
		defer s.relaying.Store(false)
		s.relay.deliver(ctx, &round{l: s.l}, events, now)
	})
}

// joinsEvery is how often a node gives up the old ticks of the jobs that follow several others.
const joinsEvery = 10 * time.Minute

// giveUpJoins gives up old ticks of the jobs that follow several others and that this node goes first for, a job with each sweep. Without
// it they would stay until another tick of the job comes.
func (s *sweep) giveUpJoins(ctx context.Context) {
	if s.joinsListed.IsZero() {
		s.joinsListed = time.Now()
	}
	if len(s.joins) == 0 && time.Since(s.joinsListed) >= joinsEvery {
		s.joinsListed = time.Now()
		for _, j := range s.l.Jobs.All() {
			if len(j.After) > 1 && s.l.Nodes.Owns(j) && s.l.lanes.of(j.Part) == s.l {
				s.joins = append(s.joins, j.Name)
			}
		}
	}
	if len(s.joins) == 0 || !s.l.TakesWork() {
		return
	}
	job := s.joins[0]
	s.joins = s.joins[1:]
	s.ask(ctx, job, func(ctx context.Context) error {
		err := s.l.Ledger.GiveUpJoins(ctx, job)
		if errors.Is(err, ledger.ErrClosed) {
			return nil
		}
		return err
	})
}

// reap settles runs as abandoned.
func (s *sweep) reap(ctx context.Context, reapable []ledger.Lease) {
	foreign := 0
	partOf := func(l ledger.Lease) int { return s.l.Ledger.Partition(l.Job) }
	slices.SortStableFunc(reapable, func(a, b ledger.Lease) int { return partOf(a) - partOf(b) })
	for batch := range work.Batches(reapable, ledger.BatchMax, partOf) {
		s.ask(ctx, batch[0].Job, func(ctx context.Context) error {
			server, may := s.l.epochs.claims(partOf(batch[0]))
			if !may {
				return nil // the next sweep tries again
			}
			statuses, err := s.l.Ledger.Reap(ctx, s.l.Clock.Now().UnixMilli(), server, batch)
			if err == nil {
				foreign += s.reaped(batch, statuses)
			}
			return err
		})
		if errors.Is(s.failed, ledger.ErrClock) {
			s.l.lanes.Resample(ctx)
			return
		}
	}
	s.unknownLapsed.Note(foreign, "entries or histories of jobs whose runs have lapsed")
}

// reaped logs the abandoned runs, tells the agenda that their jobs are free, and returns how many
// records have an unknown format.
func (s *sweep) reaped(batch []ledger.Lease, statuses []ledger.Status) (foreign int) {
	var free []*work.Job
	for i, l := range batch {
		switch statuses[i] {
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
			s.l.watchdog.ignore(l.Run)
		default: // renewed or ended meanwhile
		}
	}
	if len(free) > 0 {
		s.l.Inbox.Send(agenda.Reaped{Jobs: free})
	}
	return foreign
}
