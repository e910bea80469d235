package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// relay brings word of ticks to the jobs that follow theirs. Any node may, for a repeated word changes
// nothing; so that not all do, the one that hashing puts first does it at once, the others in their turn.
func (s *sweep) relay(ctx context.Context, events []ledger.Event, now int64) error {
	var errs []error
	for _, e := range events {
		rank := slices.IndexFunc(sharding.Rank(e.Upstream, s.n.crowd.Load().nodes), func(x sharding.Node) bool { return x.ID == s.n.id })
		if turn := time.Duration(min(max(rank, 0), turnsMax)) * s.n.cfg.Grace; rank > 0 && now-e.At < turn.Milliseconds() {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := s.tell(call, e, now)
		cancel()
		errs = append(errs, err)
		if errors.Is(err, locking.ErrUnreachable) {
			break // the next sweep finds the rest again
		}
	}
	return errors.Join(errs...)
}

// unheldAfter is how old word of a success must be before a follower that no living node holds is told
// that it missed the tick: long enough for a node to be started again.
const unheldAfter = 30 * time.Second

// tell tells all followers of an event, which then leaves the outbox. One that cannot take it yet keeps
// it there for a later sweep.
func (s *sweep) tell(ctx context.Context, e ledger.Event, now int64) error {
	waits, mine := false, false
	for _, job := range e.Followers {
		e.Unheld = e.Outcome == jobs.OutcomeSucceeded && !s.n.crowd.Load().knows(job)
		if e.Unheld && now-e.At < unheldAfter.Milliseconds() {
			waits = true
			continue
		}
		word, err := s.n.ledger.Relay(ctx, e, job)
		switch {
		case err != nil:
			return err
		case word == ledger.RelayFull:
			waits = true
			if time.Since(s.saidFull) > sayAgain {
				s.saidFull = time.Now()
				s.n.log.Warn("a job cannot be told of the one it follows: too many runs wait beside it, or too much word for those that follow it", "job", job, "follows", e.Upstream)
			}
		case word == ledger.Strange:
			waits = true
			s.strange.note(1, "entries or histories of jobs that follow others")
		case word == ledger.RelayDone:
			mine = mine || s.n.engine.byName[job] != nil
		}
	}
	if waits {
		return nil
	}
	err := s.n.ledger.Relayed(ctx, e)
	if mine {
		signal(s.n.sweepNow) // runs are pending now
	}
	return err
}

const (
	// An overdue job that no living node holds is an orphan. It is looked at ever more rarely.
	orphanAfter   = 10 * time.Second
	orphanLongest = time.Hour
	// orphansMax is how many are put off in one sweep, orphansKnown of how many a node knows how often they were.
	orphansMax   = 32
	orphansKnown = 1024
)

// held leaves out the orphans among overdue jobs, and puts off the next look at them.
func (s *sweep) held(ctx context.Context, late []ledger.Late, now int64) (_ []ledger.Late, err error) {
	crowd, budget := s.n.crowd.Load(), orphansMax
	for name := range s.orphans {
		if crowd.knows(name) {
			delete(s.orphans, name)
		}
	}
	late = slices.DeleteFunc(late, func(l ledger.Late) bool {
		times := s.orphans[l.Job]
		if times == 0 && now-l.Cursor < orphanAfter.Milliseconds() || crowd.knows(l.Job) {
			return false
		}
		if budget--; budget < 0 || err != nil {
			return true
		}
		if times == 0 && len(s.orphans) >= orphansKnown { // some may have been removed long ago
			clear(s.orphans)
		}
		s.orphans[l.Job]++
		if times == 0 {
			s.n.log.Warn("no living node holds this job; it is looked at ever more rarely until one does, or until `jobs remove`", "job", l.Job)
		}
		wait := min(orphanLongest, orphanAfter<<min(times, 10))
		err = s.n.ledger.Postpone(ctx, l, now+wait.Milliseconds())
		return true
	})
	return late, err
}
