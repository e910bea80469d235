package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sweep looks on every node for neglected work in a lane's partitions. It hands late ticks and
// pending runs to the agenda, reaps lapsed leases, cancels runs, delivers events to followers, and
// postpones jobs that no living node can run.
type sweep struct {
	home    *link
	links   links
	id      string // the node's
	clock   *Clock
	jobs    *work.Jobs
	slots   *agenda.Slots
	inbox   *agenda.Inbox
	runs    Runs
	cursors *failover.Cursors
	skew    time.Duration // MaxSkew
	grace   time.Duration
	every   time.Duration
	early   <-chan struct{} // holds one signal: sweep early

	scanner    *query.Scanner
	backfiller *backfiller
	records    *records
	watchdog   *watchdog
	unrunnable *unrunnable
	reaper     *reaper
	relay      *relay
	joins      *joins
	unknown    UnknownFormats

	background        sync.WaitGroup // calls for which the sweep does not wait
	probing, relaying atomic.Bool    // such a call is under way
}

// sweepPause is how long an early sweep waits, so that many requests make one.
const sweepPause = 50 * time.Millisecond

// run sweeps until ctx ends. It starts at a point of the period that depends on the node's id, so
// that nodes do not sweep together. From then until alive ends it only looks for runs to cancel.
func (s *sweep) run(ctx, alive context.Context) {
	defer s.background.Wait()
	wait.For(ctx, wait.Spread(s.id+" sweep"+s.home.addr, time.Now(), s.every))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.every) // with a ticker, the next tick and the end of a call could meet in one instant
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
		case <-s.early:
			wait.For(alive, sweepPause)
		case <-timer.C:
		}
	}
}

// cancelled looks for runs to cancel and nothing else.
func (s *sweep) cancelled(alive context.Context) {
	parts := s.home.epochs.Parts()
	if s.slots.Used() == 0 || len(parts) == 0 {
		return
	}
	call, cancel := context.WithTimeout(alive, ledger.CallTimeout)
	defer cancel()
	found, err := query.Cancels(call, s.home.ledger, parts...)
	if err != nil && alive.Err() == nil {
		s.home.breaker.Fail(roleSweep, err)
	}
	for _, c := range found {
		s.runs.Cancelled(c)
	}
}

// probe checks whether a master that did not answer does now.
func (s *sweep) probe(ctx context.Context, part int) {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	if err := epoch.Answers(call, s.home.ledger, part); err == nil {
		s.home.breaker.ok(roleSweep)
	} else if ctx.Err() == nil {
		s.home.breaker.Fail(roleSweep, err)
	}
}

// confirm checks whether replicas confirm the master's writes again. The sweep does not wait for the
// answer.
func (s *sweep) confirm(ctx context.Context, part int) {
	if !s.home.breaker.isUnconfirmed() || s.probing.Swap(true) {
		return
	}
	s.background.Go(func() {
		defer s.probing.Store(false)
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		defer cancel()
		if err := claim.Confirmed(call, s.home.ledger, part); err == nil || ctx.Err() == nil {
			s.home.breaker.setConfirmed(err)
		}
	})
}

func (s *sweep) once(ctx context.Context) {
	k := s.home
	parts := k.epochs.Parts()
	if len(parts) > 0 && k.breaker.open() {
		s.probe(ctx, parts[0])
	}
	parts = slices.DeleteFunc(parts, k.epochs.Blocks)
	if s.clock.Usable() != nil || len(parts) == 0 || k.breaker.open() {
		return
	}
	s.confirm(ctx, parts[0])
	calls := &masterCalls{home: k, links: s.links}
	s.backfiller.feed(ctx, calls)
	call, cancel := context.WithTimeout(ctx, 2*s.skew)
	defer cancel()
	now := s.clock.Now().UnixMilli()
	found, err := s.scanner.Scan(call, now, s.grace.Milliseconds(), parts...)
	if left := (*ledger.UnreachableError)(nil); errors.As(err, &left) && redisconn.OfSlot(left.Err) { // a partition that moves hides no other
		parts, err = slices.DeleteFunc(parts, func(p int) bool { return slices.Contains(left.Parts, p) }), nil
	}
	if err != nil {
		if !errors.Is(call.Err(), context.Canceled) {
			k.breaker.Fail(roleSweep, err)
		}
		return
	}
	s.handle(ctx, call, calls, found, parts, now)
	if calls.failed == nil {
		k.breaker.ok(roleSweep)
	}
}

// handle handles the result of a scan of some partitions. ctx ends with the sweep's role, call with this sweep.
func (s *sweep) handle(ctx, call context.Context, calls *masterCalls, found query.ScanResult, parts []int, now int64) {
	s.records.check(call, found)
	s.home.breaker.answered() // before the agenda checks whose turn it is: turns start anew after an outage
	s.cursors.Overdue(s.jobs, found.Late, now)
	s.watchdog.sweep(call, found)
	s.backfiller.seen(found.Backfills)
	s.unknown.Note(found.UnknownFormat, "records in the ledger")
	for _, c := range found.Cancels {
		s.runs.Cancelled(c)
	}
	found.Late = s.unrunnable.drop(call, calls, found.Late, now)
	if len(found.Late)+len(found.Pending) > 0 {
		s.inbox.Send(agenda.Found{ScanResult: found, Parts: parts})
	}
	s.reaper.reap(call, calls, s.reaper.reapable(call, found.Lapsed))
	s.notifyFollowers(ctx, call, calls, found.Events, now)
	s.joins.giveUp(call, calls)
}

// notifyFollowers notifies jobs that follow. On a Cluster they may have other masters, for which the sweep
// does not wait.
func (s *sweep) notifyFollowers(ctx, call context.Context, calls *masterCalls, events []ledger.Event, now int64) {
	if !s.home.clustered {
		s.relay.deliver(call, calls, events, now)
		return
	}
	if len(events) == 0 || s.relaying.Swap(true) {
		return
	}
	s.background.Go(func() {
		defer s.relaying.Store(false)
		s.relay.deliver(ctx, &masterCalls{home: s.home, links: s.links}, events, now)
	})
}

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

// joinsEvery is how often a node gives up the old ticks of jobs with several upstreams.
const joinsEvery = 10 * time.Minute

// joins gives up old ticks of jobs with several upstreams.
type joins struct {
	home      *link
	links     links
	jobs      *work.Jobs
	owns      func(j *work.Job) bool // this node owns a job
	takesWork func() bool

	left   []string  // jobs whose old ticks are to be given up
	listed time.Time // when left was filled
}

// giveUp gives up old ticks of jobs with several upstreams that this node owns, a job
// with each sweep. Without it they would stay until another tick of the job comes.
func (j *joins) giveUp(ctx context.Context, calls *masterCalls) {
	if j.listed.IsZero() {
		j.listed = time.Now()
	}
	if len(j.left) == 0 && time.Since(j.listed) >= joinsEvery {
		j.listed = time.Now()
		for _, job := range j.jobs.All() {
			if len(job.After) > 1 && j.owns(job) && j.links(job.Part) == j.home {
				j.left = append(j.left, job.Name)
			}
		}
	}
	if len(j.left) == 0 || !j.takesWork() {
		return
	}
	job := j.left[0]
	j.left = j.left[1:]
	calls.ask(ctx, job, func(ctx context.Context) error {
		err := follow.GiveUpJoins(ctx, j.home.ledger, job)
		if errors.Is(err, ledger.ErrClosed) {
			return nil
		}
		return err
	})
}
