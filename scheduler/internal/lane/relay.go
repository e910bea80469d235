package lane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// relay brings word of ticks of a lane's jobs to those that follow them. One goroutine at a time uses it.
type relay struct {
	l          *Lane
	told       notified
	waited     map[string]unheldSince // followers that nobody alive holds as they are stored, for half a minute after the ledger said so
	saidUnheld map[string]time.Time   // followers that nobody alive holds: when it was said
	saidFull   time.Time              // that a follower cannot be told
	strange    UnknownFormats
}

func newRelay(l *Lane) *relay {
	return &relay{l: l, waited: make(map[string]unheldSince), saidUnheld: make(map[string]time.Time), strange: UnknownFormats{Log: l.Log}}
}

// bring brings word of ticks to the jobs that follow theirs. Any node may, for a repeated word changes
// nothing; so that not all do, the one that hashing puts first does it at once, the others in their turn. Those in whose turn the
// event is still there tell it too, once each: they do not know who was told by others.
func (r *relay) bring(ctx context.Context, asks *round, events []ledger.Event, now int64) {
	r.told.begin()
	maps.DeleteFunc(r.waited, func(_ string, w unheldSince) bool { return time.Since(w.asked) >= unheldAfter })
	for _, e := range events {
		if ctx.Err() != nil || !r.turn(e, now) {
			continue
		}
		r.tell(ctx, asks, e, now)
	}
}

// turn says whether it is this node's turn to tell of an event.
func (r *relay) turn(e ledger.Event, now int64) bool {
	age, grace := now-e.At, r.l.Grace.Milliseconds()
	if age >= TurnsMax*grace {
		return true
	}
	rank := slices.IndexFunc(sharding.Rank(e.Upstream, r.l.Nodes.Living()), func(x sharding.Node) bool { return x.ID == r.l.ID })
	return rank <= 0 || age >= int64(min(rank, TurnsMax))*grace
}

// unheldAfter is how old word of a success must be before a follower that no living node holds is told
// that it missed the tick: long enough for a node to be started again.
const unheldAfter = 30 * time.Second

// tell tells all followers of an event, which then leaves the outbox. One that cannot take it yet keeps
// it there for a later sweep, which tells those that have not answered; so does a server that is not the one that was told.
func (r *relay) tell(ctx context.Context, asks *round, e ledger.Event, now int64) {
	waits, mine := false, false
	upstream := r.server(e.Upstream)
	answered := make(map[string]string)
	for _, job := range e.Followers {
		server := r.server(job)
		if r.told.has(e, job, server) {
			continue
		}
		switch word := r.word(ctx, asks, e, job, now); word {
		case ledger.RelayDone, ledger.RelayUnrelated:
			answered[job] = server
			mine = mine || word == ledger.RelayDone && r.l.Jobs.Named(job) != nil
			continue
		case ledger.RelayFull:
			if time.Since(r.saidFull) > sayAgain {
				r.saidFull = time.Now()
				r.l.Log.Warn("a job cannot be told of the one it follows: too many runs wait beside it, or too much word for those that follow it", "job", job, "follows", e.Upstream)
			}
		case ledger.Strange:
			r.strange.Note(1, "entries or histories of jobs that follow others")
		case ledger.RelayUnheld:
			r.unheld(e, job, now)
		default: // not answered
		}
		waits = true
	}
	if mine {
		for job := range answered { // runs are pending now
			r.l.lanes.Sweep(r.l.Ledger.Partition(job))
		}
	}
	if waits {
		r.told.keep(e, answered)
		return
	}
	asks.ask(ctx, e.Upstream, func(ctx context.Context) error {
		err := r.l.Ledger.At(upstream).Relayed(ctx, e)
		switch {
		case errors.Is(err, ledger.ErrServer):
			r.l.failover.doubt()
			return nil
		case err == nil:
			r.told.forget(e)
		}
		return err
	})
}

// server is the id of the master that has a job.
func (r *relay) server(job string) string {
	return r.l.lanes.of(r.l.Ledger.Partition(job)).failover.current()
}

// unheldSince is for a follower that living nodes hold in other definitions than the stored one: since when the ledger has said so, and when
// it did last.
type unheldSince struct{ since, asked time.Time }

// word tells one follower, and returns its answer. A success waits first, for a follower that nobody who lives and claims holds in the
// definition that is stored: nodes may know the job by its name and have none of their generation. Those who have just joined are
// about to store what they hold, so old word is no reason to believe that they cannot.
func (r *relay) word(ctx context.Context, asks *round, e ledger.Event, job string, now int64) (word ledger.Status) {
	w := r.waited[job]
	if e.Outcome == jobs.OutcomeSucceeded {
		e.Holders = r.l.Nodes.Digests(job)
		nobody := len(e.Holders) == 0 || !w.since.IsZero() && time.Since(w.since) >= unheldAfter
		e.Unheld = e.Holders != nil && nobody && now-e.At >= unheldAfter.Milliseconds()
		if e.Holders != nil && !e.Unheld && (len(e.Holders) == 0 || time.Since(w.asked) < askedAnew) {
			return ledger.RelayUnheld
		}
	}
	asks.ask(ctx, job, func(ctx context.Context) (err error) {
		word, err = r.l.Ledger.Relay(ctx, e, job)
		return err
	})
	switch {
	case word == ledger.RelayUnheld:
		w.asked = time.Now()
		if w.since.IsZero() {
			w.since = w.asked
		}
		r.waited[strings.Clone(job)] = w
	case word == ledger.RelayDone && !e.Unheld: // somebody holds it, or it was told before
		delete(r.waited, job)
	}
	return word
}

// unheld says, once an hour for each and of some at a time, that a follower is held by nobody, when word has waited for it
// for so long that its node is hardly being started again.
func (r *relay) unheld(e ledger.Event, job string, now int64) {
	said, known := r.saidUnheld[job]
	if now-e.At < noNodeAfter.Milliseconds() || known && time.Since(said) < noNodeLongest {
		return
	}
	if !known && len(r.saidUnheld) >= noNodesKnown {
		maps.DeleteFunc(r.saidUnheld, func(_ string, said time.Time) bool { return time.Since(said) >= noNodeLongest })
		if len(r.saidUnheld) >= noNodesKnown {
			return
		}
	}
	r.saidUnheld[strings.Clone(job)] = time.Now()
	held := "none"
	if len(r.l.Nodes.Digests(job)) > 0 {
		held = "another definition than is stored; `generations list` shows whose that is, and `generations promote` changes it"
	}
	r.l.Log.Warn("no living node holds this job, which follows another one: each success of that one waits half a minute for it, which then has missed the tick; start a node that has it, or remove it with `jobs remove`", "job", job, "follows", e.Upstream, "held", held)
}
