package lane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// relay brings word of ticks to the jobs that follow theirs. Any node may, for a repeated word changes
// nothing; so that not all do, the one that hashing puts first does it at once, the others in their turn. Those in whose turn the
// event is still there tell it too, once each: they do not know who was told by others.
func (s *sweep) relay(ctx context.Context, events []ledger.Event, now int64) {
	s.told.begin()
	maps.DeleteFunc(s.waited, func(_ string, w unheldSince) bool { return time.Since(w.asked) >= unheldAfter })
	for _, e := range events {
		if !s.turn(e, now) {
			continue
		}
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		s.tell(call, e, now)
		cancel()
	}
}

// turn says whether it is this node's turn to tell of an event.
func (s *sweep) turn(e ledger.Event, now int64) bool {
	age, grace := now-e.At, s.l.Grace.Milliseconds()
	if age >= TurnsMax*grace {
		return true
	}
	rank := slices.IndexFunc(sharding.Rank(e.Upstream, s.l.Nodes.Living()), func(x sharding.Node) bool { return x.ID == s.l.ID })
	return rank <= 0 || age >= int64(min(rank, TurnsMax))*grace
}

// unheldAfter is how old word of a success must be before a follower that no living node holds is told
// that it missed the tick: long enough for a node to be started again.
const unheldAfter = 30 * time.Second

// tell tells all followers of an event, which then leaves the outbox. One that cannot take it yet keeps
// it there for a later sweep, which tells those that have not answered; so does a server that is not the one that was told.
func (s *sweep) tell(ctx context.Context, e ledger.Event, now int64) {
	waits, mine := false, false
	upstream := s.server(e.Upstream)
	answered := make(map[string]string)
	for _, job := range e.Followers {
		server := s.server(job)
		if s.told.has(e, job, server) {
			continue
		}
		switch word := s.word(ctx, e, job, now); word {
		case ledger.RelayDone, ledger.RelayStranger:
			answered[job] = server
			mine = mine || word == ledger.RelayDone && s.l.Jobs.Named(job) != nil
			continue
		case ledger.RelayFull:
			if time.Since(s.saidFull) > sayAgain {
				s.saidFull = time.Now()
				s.l.Log.Warn("a job cannot be told of the one it follows: too many runs wait beside it, or too much word for those that follow it", "job", job, "follows", e.Upstream)
			}
		case ledger.Strange:
			s.strange.Note(1, "entries or histories of jobs that follow others")
		case ledger.RelayUnheld:
			s.unheld(e, job, now)
		default: // not answered
		}
		waits = true
	}
	if mine {
		for job := range answered { // runs are pending now
			s.l.lanes.Sweep(s.l.Ledger.Partition(job))
		}
	}
	if waits {
		s.told.keep(e, answered)
		return
	}
	s.ask(ctx, e.Upstream, func() error {
		err := s.l.Ledger.At(upstream).Relayed(ctx, e)
		switch {
		case errors.Is(err, ledger.ErrServer):
			s.l.failover.doubt()
			return nil
		case err == nil:
			s.told.forget(e)
		}
		return err
	})
}

// server is the id of the master that has a job.
func (s *sweep) server(job string) string {
	return s.l.lanes.of(s.l.Ledger.Partition(job)).failover.current()
}

// unheldSince is for a follower that living nodes hold in other definitions than the stored one: since when the ledger has said so, and when
// it did last.
type unheldSince struct{ since, asked time.Time }

// word tells one follower, and returns its answer. A success waits first, for a follower that nobody who lives and claims holds in the
// definition that is stored: nodes may know the job by its name and have none of their generation. Those who have just joined are
// about to store what they hold, so old word is no reason to believe that they cannot.
func (s *sweep) word(ctx context.Context, e ledger.Event, job string, now int64) (word ledger.Word) {
	w := s.waited[job]
	if e.Outcome == jobs.OutcomeSucceeded {
		e.Holders = s.l.Nodes.Digests(job)
		nobody := len(e.Holders) == 0 || !w.since.IsZero() && time.Since(w.since) >= unheldAfter
		e.Unheld = e.Holders != nil && nobody && now-e.At >= unheldAfter.Milliseconds()
		if e.Holders != nil && !e.Unheld && (len(e.Holders) == 0 || time.Since(w.asked) < askedAnew) {
			return ledger.RelayUnheld
		}
	}
	s.ask(ctx, job, func() (err error) {
		word, err = s.l.Ledger.Relay(ctx, e, job)
		return err
	})
	switch {
	case word == ledger.RelayUnheld:
		w.asked = time.Now()
		if w.since.IsZero() {
			w.since = w.asked
		}
		s.waited[strings.Clone(job)] = w
	case word == ledger.RelayDone && !e.Unheld: // somebody holds it, or it was told before
		delete(s.waited, job)
	}
	return word
}

// unheld says, once an hour for each and of some at a time, that a follower is held by nobody, when word has waited for it
// for so long that its node is hardly being started again.
func (s *sweep) unheld(e ledger.Event, job string, now int64) {
	said, known := s.saidUnheld[job]
	if now-e.At < orphanAfter.Milliseconds() || known && time.Since(said) < orphanLongest {
		return
	}
	if !known && len(s.saidUnheld) >= orphansKnown {
		maps.DeleteFunc(s.saidUnheld, func(_ string, said time.Time) bool { return time.Since(said) >= orphanLongest })
		if len(s.saidUnheld) >= orphansKnown {
			return
		}
	}
	s.saidUnheld[strings.Clone(job)] = time.Now()
	held := "none"
	if len(s.l.Nodes.Digests(job)) > 0 {
		held = "another definition than is stored; `generations list` shows whose that is, and `generations promote` changes it"
	}
	s.l.Log.Warn("no living node holds this job, which follows another one: each success of that one waits half a minute for it, which then has missed the tick; start a node that has it, or remove it with `jobs remove`", "job", job, "follows", e.Upstream, "held", held)
}
