package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// relay brings word of ticks to the jobs that follow theirs. Any node may, for a repeated word changes
// nothing; so that not all do, the one that hashing puts first does it at once, the others in their turn.
func (s *sweep) relay(ctx context.Context, events []ledger.Event, now int64) {
	for _, e := range events {
		rank := slices.IndexFunc(sharding.Rank(e.Upstream, s.n.crowd.Load().nodes), func(x sharding.Node) bool { return x.ID == s.n.id })
		if turn := time.Duration(min(max(rank, 0), turnsMax)) * s.n.cfg.Grace; rank > 0 && now-e.At < turn.Milliseconds() {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		s.tell(call, e, now)
		cancel()
	}
}

// unheldAfter is how old word of a success must be before a follower that no living node holds is told
// that it missed the tick: long enough for a node to be started again.
const unheldAfter = 30 * time.Second

// tell tells all followers of an event, which then leaves the outbox. One that cannot take it yet keeps
// it there for a later sweep.
func (s *sweep) tell(ctx context.Context, e ledger.Event, now int64) {
	waits, mine := false, false
	for _, job := range e.Followers {
		e.Unheld = e.Outcome == jobs.OutcomeSucceeded && !s.n.crowd.Load().knows(job)
		if e.Unheld && now-e.At < unheldAfter.Milliseconds() {
			waits = true
			continue
		}
		var word ledger.Word
		s.ask(ctx, job, func() (err error) {
			word, err = s.n.ledger.Relay(ctx, e, job)
			return err
		})
		switch {
		case word == "": // not answered
			waits = true
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
		return
	}
	s.ask(ctx, e.Upstream, func() error { return s.n.ledger.Relayed(ctx, e) })
	if mine {
		signal(s.n.sweepNow) // runs are pending now
	}
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
func (s *sweep) held(ctx context.Context, late []ledger.Late, now int64) []ledger.Late {
	crowd, budget := s.n.crowd.Load(), orphansMax
	for name := range s.orphans {
		if crowd.knows(name) {
			delete(s.orphans, name)
		}
	}
	return slices.DeleteFunc(late, func(l ledger.Late) bool {
		times := s.orphans[l.Job]
		if times == 0 && now-l.Cursor < orphanAfter.Milliseconds() || crowd.knows(l.Job) {
			return false
		}
		if budget--; budget < 0 {
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
		s.ask(ctx, l.Job, func() error { return s.n.ledger.Postpone(ctx, l, now+wait.Milliseconds()) })
		return true
	})
}
