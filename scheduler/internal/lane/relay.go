package lane

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// relay delivers the ends of ticks in a lane's partitions to followers. One goroutine at a time
// uses it.
type relay struct {
	home  *link
	links links
	id    string // the node's
	grace time.Duration
	nodes Nodes
	jobs  *work.Jobs
	sweep func(part int) // requests an early sweep of a partition
	log   *slog.Logger

	notified     notified
	unheldJobs   map[string]unheldSince // followers whose stored definition no living node holds: half a minute from the ledger's answer
	loggedUnheld map[string]time.Time   // when it was logged that no living node holds a follower
	loggedFull   time.Time              // when it was logged that a follower cannot be notified
	unknown      UnknownFormats
}

// deliver delivers events to their followers. Any node may, because a repeated delivery changes
// nothing. The node preferred by hashing does it at once, other nodes in their turn. Each of them
// sends an event that is still there once, because the nodes do not share the followers' answers.
func (r *relay) deliver(ctx context.Context, calls *masterCalls, events []ledger.Event, now int64) {
	r.notified.begin()
	maps.DeleteFunc(r.unheldJobs, func(_ string, w unheldSince) bool { return time.Since(w.asked) >= unheldAfter })
	for _, e := range events {
		if ctx.Err() != nil || !r.myTurn(e, now) {
			continue
		}
		r.notifyAll(ctx, calls, e, now)
	}
}

// myTurn reports whether it is this node's turn to deliver an event.
func (r *relay) myTurn(e ledger.Event, now int64) bool {
	age, grace := now-e.At, r.grace.Milliseconds()
	if age >= TakeoverMax*grace {
		return true
	}
	rank := slices.IndexFunc(sharding.Rank(e.Upstream, r.nodes.Living()), func(x sharding.Node) bool { return x.ID == r.id })
	return rank <= 0 || age >= int64(min(rank, TakeoverMax))*grace
}

// unheldAfter is how old an event must be before a follower that no living node holds has missed
// the tick: long enough to restart a node.
const unheldAfter = 30 * time.Second

// notifyAll notifies all followers of an event, which then leaves the outbox. It stays for a later
// sweep while a follower cannot take it, or when the follower's server has changed.
func (r *relay) notifyAll(ctx context.Context, calls *masterCalls, e ledger.Event, now int64) {
	waits, mine := false, false
	upstream := r.server(e.Upstream)
	answered := make(map[string]string)
	for _, job := range e.Followers {
		server := r.server(job)
		if r.notified.has(e, job, 0, server) {
			continue
		}
		switch status := r.notify(ctx, calls, e, job, now); status {
		case follow.Done, follow.Unrelated:
			answered[job] = server
			mine = mine || status == follow.Done && r.jobs.Named(job) != nil
			continue
		case follow.Full:
			if time.Since(r.loggedFull) > logEvery {
				r.loggedFull = time.Now()
				r.log.Warn("a job cannot be told of the job that it follows: too many runs are pending in its partition, or its outbox is full", "job", job, "follows", e.Upstream)
			}
		case ledger.StatusUnknownFormat:
			r.unknown.Note(1, "entries or histories of jobs that follow others")
		case follow.Unheld:
			r.logUnheld(e, job, now)
		default: // not answered
		}
		waits = true
	}
	if mine {
		for job := range answered { // runs are pending now
			r.sweep(r.home.ledger.Partition(job))
		}
	}
	if waits {
		for job, server := range answered {
			r.notified.keep(e, job, 0, server)
		}
		return
	}
	calls.ask(ctx, e.Upstream, func(ctx context.Context) error {
		err := follow.Relayed(ctx, r.home.ledger.At(upstream), e)
		switch {
		case errors.Is(err, ledger.ErrServer):
			r.home.epochs.Recheck()
			return nil
		case err == nil:
			r.notified.forget(e)
		}
		return err
	})
}

// server is the id of the epoch of a job's partition.
func (r *relay) server(job string) string {
	part := r.home.ledger.Partition(job)
	return r.links(part).epochs.EpochID(part)
}

// unheldSince is a follower that no node can run: since when living nodes hold it in other
// definitions than the stored one, and the kind of end and the time of the ledger's last answer
// about it.
type unheldSince struct {
	since, asked time.Time
	outcome      jobs.Outcome
}

// notify delivers an event to one follower and returns its answer. An end after which the follower
// runs waits while no living node that claims holds the follower's stored definition: nodes may
// have the job by name and not in its generation. Only the ledger has the ends after which it runs,
// and is called once a second. Nodes that have just joined are about to store their definitions, so
// an old event does not prove that no node can run the follower.
func (r *relay) notify(ctx context.Context, calls *masterCalls, e ledger.Event, job string, now int64) (status ledger.Status) {
	w := r.unheldJobs[job]
	e.Holders = r.nodes.Digests(job)
	nobody := len(e.Holders) == 0 || !w.since.IsZero() && time.Since(w.since) >= unheldAfter
	e.Unheld = e.Holders != nil && nobody && now-e.At >= unheldAfter.Milliseconds()
	if !e.Unheld && e.Outcome == w.outcome && time.Since(w.asked) < reclaimDelay {
		return follow.Unheld
	}
	status = r.deliverTo(ctx, calls, e, job)
	if status == follow.Several {
		status = r.deliverTicks(ctx, calls, e, job)
	}
	switch {
	case status == follow.Unheld:
		w.asked, w.outcome = time.Now(), e.Outcome
		if len(e.Holders) == 0 {
			w.since = time.Time{}
		} else if w.since.IsZero() {
			w.since = w.asked
		}
		r.unheldJobs[strings.Clone(job)] = w
	case status == follow.Done && !e.Unheld && e.Outcome == w.outcome: // a node holds it, or it was notified before
		delete(r.unheldJobs, job)
	}
	return status
}

// logUnheld logs, once an hour for each follower, that no living node holds it, after the event has
// waited longer than a restart takes.
func (r *relay) logUnheld(e ledger.Event, job string, now int64) {
	loggedAt, known := r.loggedUnheld[job]
	if now-e.At < noNodeCheck.Milliseconds() || known && time.Since(loggedAt) < noNodeLongest {
		return
	}
	if !known && len(r.loggedUnheld) >= noNodesKnown {
		maps.DeleteFunc(r.loggedUnheld, func(_ string, loggedAt time.Time) bool { return time.Since(loggedAt) >= noNodeLongest })
		if len(r.loggedUnheld) >= noNodesKnown {
			return
		}
	}
	r.loggedUnheld[strings.Clone(job)] = time.Now()
	held := "none"
	if len(r.nodes.Digests(job)) > 0 {
		held = "another definition than the stored one; `generations list` shows whose that is, and `generations promote` changes it"
	}
	r.log.Warn("no living node holds this job, which follows another one: each success of that one waits half a minute, then this job has missed the tick; start a node that has it, or delete the job with `jobs delete`", "job", job, "follows", e.Upstream, "held", held)
}

const (
	// answersFor is how long a node remembers a follower's answer: longer than an event waits for a
	// follower without a node. An event that waits longer, for a full partition, is sent again once
	// in that time.
	answersFor = 2 * unheldAfter
	// answersMax bounds the answers that a node remembers, some 200 bytes each. Further events are
	// sent again in each sweep.
	answersMax = 1 << 15
)

// notified remembers which followers have answered, for events that stay in the outbox because of
// other followers. So a waiting event is not sent again in each sweep. Each node remembers only its
// own answers. Only the relay uses it.
type notified struct {
	answers map[delivery]answer
	swept   time.Time // when old answers were last dropped
}

// delivery is one event for one follower, or one tick of the event, ms.
type delivery struct {
	event, job string
	tick       int64 // 0 for the whole event
}

// answer is the server that answered, and when. Another server may have lost the event's effect.
type answer struct {
	server string
	at     time.Time
}

// begin drops old answers now and then: their events have left the outbox.
func (t *notified) begin() {
	now := time.Now()
	if t.answers == nil {
		t.answers, t.swept = make(map[delivery]answer), now
	}
	if now.Sub(t.swept) >= answersFor/4 {
		t.swept = now
		maps.DeleteFunc(t.answers, func(_ delivery, a answer) bool { return now.Sub(a.at) >= answersFor })
	}
}

// has reports whether a follower's server has answered lately, to a tick of an event or, with 0, to the event.
func (t *notified) has(e ledger.Event, job string, tick int64, server string) bool {
	a, known := t.answers[delivery{e.Record(), job, tick}]
	return known && a.server == server && time.Since(a.at) < answersFor
}

// keep remembers that a server has answered, as for has. It copies the name, which is part of a longer text.
func (t *notified) keep(e ledger.Event, job string, tick int64, server string) {
	if len(t.answers) < answersMax {
		t.answers[delivery{e.Record(), strings.Clone(job), tick}] = answer{server, time.Now()}
	}
}

// forget drops the answers to an event that has left the outbox.
func (t *notified) forget(e ledger.Event) {
	if e.Count > 1 { // its ticks too
		maps.DeleteFunc(t.answers, func(d delivery, _ answer) bool { return d.event == e.Record() })
	}
	for _, job := range e.Followers {
		delete(t.answers, delivery{e.Record(), job, 0})
	}
}
