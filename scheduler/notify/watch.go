package notify

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/notices"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Fields that are stored beside the notes of jobs.
const (
	lookedField = ":looked"
	queuePrefix = ":to "
)

// watch is a notifier's state during a term. It begins with the records in Redis.
type watch struct {
	cfg       Config
	log       *slog.Logger
	token     locking.Token
	l         *ledger.Ledger
	roster    *roster.Roster
	namespace string

	looked    int64 // when the last look began, by Redis' clock, ms; 0 before the first ever
	whole     int64 // when the last look at all jobs began
	seen      map[string]seen
	deadlines map[string]deadline
	cancels   map[string]bool    // jobs that cancel runs that stall
	stalls    map[string][]stall // by job, as of this look
	late      map[string]bool    // jobs that were late at the last look
	notes     map[string]*note
	queues    map[string]*queue // by target
	stored    map[string]string // the fields in Redis
}

func newWatch(ctx context.Context, client redis.UniversalClient, cfg Config, token locking.Token) (*watch, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: cfg.Namespace})
	if err != nil {
		return nil, err
	}
	w := &watch{
		cfg: cfg, log: cfg.Logger, token: token, l: l, namespace: cfg.Namespace,
		roster: roster.New(client, roster.Config{Namespace: cfg.Namespace, TTL: cluster.RosterTTL}),
		notes:  make(map[string]*note), queues: make(map[string]*queue), deadlines: make(map[string]deadline), cancels: make(map[string]bool), late: make(map[string]bool),
	}
	w.l = l.Believing(w.nodesTime)
	if w.stored, err = notices.Read(ctx, l); err != nil {
		return nil, err
	}
	for field, text := range w.stored {
		var unread error
		target, waits := strings.CutPrefix(field, queuePrefix)
		switch {
		case field == lookedField:
			w.looked, unread = strconv.ParseInt(text, 10, 64)
		case waits:
			var q queue
			q, unread = readQueue(text)
			w.queues[target] = &q
		case strings.HasPrefix(field, ":"):
			// of a later version
		default:
			w.notes[field], unread = readNote(text)
		}
		if unread == nil {
			continue
		}
		w.log.Warn("notifications: what was noted of a job or a target cannot be read, and counts as never told", "field", field, "error", unread)
		if delete(w.notes, field); waits {
			w.queues[target] = &queue{}
		}
	}
	for _, t := range cfg.Targets {
		if w.queues[t.Name] == nil {
			w.queues[t.Name] = &queue{}
		}
	}
	return w, nil
}

// nodesTime returns Redis' time as most living nodes estimate it. Events and given-up messages go
// by this time: a notified date stays true when a step of Redis' clock is taken back.
func (w *watch) nodesTime(ctx context.Context) time.Time {
	view, err := w.roster.Look(ctx)
	if err != nil {
		return time.Time{}
	}
	return view.Believed()
}

// forget drops the queues of targets that no notifier has had for long.
func (w *watch) forget(now int64) {
	for target, q := range w.queues {
		if !w.has(target) && now-q.Used > queueFor {
			delete(w.queues, target)
		}
	}
}

func (w *watch) has(target string) bool {
	return slices.ContainsFunc(w.cfg.Targets, func(t Target) bool { return t.Name == target })
}

// enqueue queues an event for the targets that want it.
func (w *watch) enqueue(e Event, now int64) {
	for _, t := range w.cfg.Targets {
		if t.wants(e) {
			w.queues[t.Name].add(e, now)
		}
	}
}

// send seals due messages, stores them and hands them to the post.
func (w *watch) send(ctx context.Context, p *post) error {
	now, err := w.l.Now(ctx)
	if err != nil {
		return err
	}
	for _, t := range w.cfg.Targets {
		q := w.queues[t.Name]
		if q.Send != nil && now.UnixMilli() > q.Until {
			w.log.Error("a notification is given up: its target has not taken it for hours", "target", t.Name, "events", len(q.Send.Events)+q.Send.More)
			q.Send = nil
		}
		q.seal(w.namespace, t.Each, w.cfg.GroupFor.Milliseconds(), w.cfg.AtMost, now.UnixMilli())
	}
	if err := w.store(ctx, nil); err != nil {
		return err
	}
	for _, t := range w.cfg.Targets {
		if m := w.queues[t.Name].Send; m != nil {
			p.send(t, *m)
		}
	}
	return nil
}

// sent notes how a round of tries has ended.
func (w *watch) sent(p *post, r result) {
	p.done(r)
	q := w.queues[r.target]
	switch {
	case q.Send == nil || q.Send.ID != r.id:
	case r.err == nil:
		q.Send = nil
	case p.ctx.Err() == nil:
		w.log.Warn("a notification could not be sent; it is tried again in a minute", "target", r.target, "error", r.err)
	}
}

// finish waits for messages that are being sent, and stores the results.
func (w *watch) finish(ctx context.Context, p *post) error {
	ctx, cancel := context.WithTimeout(ctx, finishTime)
	defer cancel()
	for p.any() {
		select {
		case r := <-p.results:
			w.sent(p, r)
		case <-ctx.Done():
			return nil
		}
	}
	return w.store(ctx, nil)
}

// store writes the fields that differ from Redis' fields, in one step, including the notes of these
// jobs.
func (w *watch) store(ctx context.Context, jobs []string) error {
	set, drop := make(map[string]string), []string(nil)
	differ := func(field, text string) {
		switch was, there := w.stored[field]; {
		case text == "" && there:
			drop = append(drop, field)
		case text != "" && text != was:
			set[field] = text
		}
	}
	for target, q := range w.queues {
		if q.Used != 0 {
			differ(queuePrefix+target, q.text())
		}
	}
	for field := range w.stored {
		if target, is := strings.CutPrefix(field, queuePrefix); is && w.queues[target] == nil {
			drop = append(drop, field)
		}
	}
	for _, job := range jobs {
		text := ""
		if n := w.notes[job]; n != nil {
			text = n.text()
		}
		differ(job, text)
	}
	if w.looked != 0 && jobs != nil {
		differ(lookedField, strconv.FormatInt(w.looked, 10))
	}
	if len(set)+len(drop) == 0 {
		return nil
	}
	if err := notices.Write(ctx, w.l, w.token, set, drop); err != nil {
		return err
	}
	for field, text := range set {
		w.stored[field] = text
	}
	for _, field := range drop {
		delete(w.stored, field)
	}
	return nil
}

// gone forgets a removed job, and notifies that its problems are over.
func (w *watch) gone(job string, now int64) (events int) {
	if n := w.notes[job]; n != nil {
		for _, kind := range Kinds {
			if n.Told[kind] == 0 {
				continue
			}
			e := Event{
				Job: job, Kind: kind, Recovered: true, Key: w.namespace + "/" + job + "/" + string(kind), At: instant(now),
				Since: stampOf(n.Told[kind]), Error: "the job was removed",
			}
			e.Text = e.sentence()
			w.enqueue(e, now)
			events++
		}
	}
	delete(w.notes, job)
	delete(w.seen, job)
	delete(w.deadlines, job)
	delete(w.cancels, job)
	delete(w.late, job)
	return events
}
