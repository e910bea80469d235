package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// authorMax and reasonMax bound the stored author and reason of an operator's action, in bytes.
const (
	authorMax = 64
	reasonMax = 256
)

// The answers of Cancel.
const (
	Told      Status = "told"      // it is going; its node ends it at its next look
	Cancelled Status = "cancelled" // it was pending, and is recorded as cancelled
)

// ask runs a script for an operator and returns its answer. An answer in no becomes that error; an
// answer that is not in yes is an error too, see refusal.
func (l *Ledger) ask(ctx context.Context, op, job string, s *script, yes []Status, no map[Status]error, args any, bytes ...any) (Status, error) {
	word, err := s.call(ctx, l.client, l.tag(job), job, args, bytes...).Text()
	switch {
	case err != nil:
		return "", l.explain(ctx, op, err)
	case slices.Contains(yes, Status(word)):
		return Status(word), nil
	case no[Status(word)] != nil:
		return "", no[Status(word)]
	}
	return "", l.refusal(op, job, word)
}

type cancelArgs struct {
	clocked
	retained

	Job    string `json:"job"`
	Run    string `json:"run"`
	Author string `json:"author"`
	Reason string `json:"reason"`
}

// Cancel ends a run for an operator. It returns Told for a run in flight, Cancelled for a pending
// one, ErrUnknownRun, ErrRefused for a run that has ended, or ErrClosed for a pending run of a
// namespace that moves.
func (l *Ledger) Cancel(ctx context.Context, job, run, author, reason string) (Status, error) {
	return l.ask(ctx, "cancel "+run, job, cancelScript, []Status{Told, Cancelled}, map[Status]error{
		"ended":   fmt.Errorf("%w: run %s has ended; `runs get` shows how", ErrRefused, run),
		NoSuchRun: fmt.Errorf("%w: %s of job %s", ErrUnknownRun, run, job),
	}, cancelArgs{l.timed(ctx), l.retained(), job, run, cmp.Or(brief(author, authorMax), "somebody"), brief(reason, reasonMax)})
}

type rerunArgs struct {
	clocked

	Job        string   `json:"job"`
	Run        string   `json:"run"`
	Fresh      string   `json:"fresh"`      // id of the next attempt
	Successors []string `json:"successors"` // ids under which that may go on
	Most       int      `json:"most"`       // pending runs in a partition
}

// Rerun requests one more attempt of an ended run, and returns the attempt's run id, the same each
// time. It returns ErrUnknownRun, or ErrRefused while the run or another attempt of its tick is in
// flight or pending.
func (l *Ledger) Rerun(ctx context.Context, job, run string) (string, error) {
	fresh := NextAttemptID(run)
	_, err := l.ask(ctx, "rerun "+run, job, rerunScript, []Status{"queued"}, map[Status]error{
		"running": fmt.Errorf("%w: run %s has not ended; cancel it first, or wait", ErrRefused, run),
		"going":   fmt.Errorf("%w: rerun %s: another attempt of its tick is going or still to come; wait for that one", ErrRefused, run),
		NoSuchRun: fmt.Errorf("%w: %s of job %s", ErrUnknownRun, run, job),
	}, rerunArgs{l.timed(ctx), job, run, fresh, laterAttemptIDs(fresh), pendingMax})
	if err != nil {
		return "", err
	}
	return fresh, nil
}

// Pause is the author, reason and end of a job's pause.
type Pause struct {
	Since          int64 // ms
	Until          int64 // ms; 0: until it is resumed
	Author, Reason string
}

type pauseArgs struct {
	clocked

	Job    string `json:"job"`
	Resume bool   `json:"resume"`
	Author string `json:"author"`
	Reason string `json:"reason"`
	Till   int64  `json:"till,string,omitempty"` // ms; 0 for no end
}

// Pause pauses a job: unclaimed ticks, and those up to Until, are recorded as paused. A repeated
// pause takes the new end and reason. Pause returns ErrUnknownJob, or ErrRefused for an end that is
// over.
func (l *Ledger) Pause(ctx context.Context, job string, p Pause) error {
	return l.pause(ctx, "pause", pauseArgs{l.timed(ctx), job, false, brief(p.Author, authorMax), brief(p.Reason, reasonMax), p.Until})
}

// Resume ends a job's pause, if there is one.
func (l *Ledger) Resume(ctx context.Context, job string) error {
	return l.pause(ctx, "resume", pauseArgs{clocked: l.timed(ctx), Job: job, Resume: true})
}

func (l *Ledger) pause(ctx context.Context, op string, args pauseArgs) error {
	_, err := l.ask(ctx, op+" "+args.Job, args.Job, pauseScript, []Status{"done"}, map[Status]error{
		"over": fmt.Errorf("%w: pause %s: the end given is over by Redis' clock", ErrRefused, args.Job),
	}, args)
	return err
}

// Pauses reads the authors and reasons of pauses. Jobs without a pause record are left out. Whether
// a job is paused now is in its Entry's Pause.
func (l *Ledger) Pauses(ctx context.Context, names ...string) (map[string]Pause, error) {
	got := make([]*redis.StringCmd, len(names))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			got[i] = p.HGet(ctx, l.keys[l.Partition(name)].pauses, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.explain(ctx, "read pauses", err)
	}
	pauses := make(map[string]Pause)
	for i, name := range names {
		if err := got[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, l.explain(ctx, "read pauses", err)
		}
		var p Pause
		if p.readPause(got[i].Val()) == nil { // otherwise there is no record, or this version cannot read it
			pauses[name] = p
		}
	}
	return pauses, nil
}

// Rewind is a request to set a job's cursor back from where the caller saw it.
type Rewind struct {
	Job, Digest string
	From, To    int64 // the cursor seen, and the tick to begin with again; ms
}

type rewindArgs struct {
	clocked
	retained

	Job    string `json:"job"`
	Digest string `json:"digest"`
	From   int64  `json:"from,string,omitempty"`
	To     int64  `json:"to,string"`
	Reach  int64  `json:"reach"` // how far before Redis' time a history that begins in the future goes back, ms
}

// The answers of Rewind.
const (
	Rewound   Status = "rewound"
	Elsewhere Status = "stale" // the cursor or the definition is another one now: read it anew
)

// Rewind sets a cursor back: ticks that were accounted for are claimed once more, as a later
// attempt than any recorded. It returns Rewound or Elsewhere, ErrClock, ErrUnknownJob, or
// ErrRefused while a run holds the job, for a tick before the history's beginning, and for a tick
// that is not behind.
func (l *Ledger) Rewind(ctx context.Context, now int64, r Rewind) (Status, error) {
	reach := min(l.cfg.KeepFor, defaultKeepFor) // a client trims no history, and has no KeepFor of its own
	args := rewindArgs{l.clocked(now), l.retained(), r.Job, r.Digest, r.From, r.To, reach.Milliseconds()}
	reply, err := rewindScript.call(ctx, l.client, l.tag(r.Job), r.Job, args).Slice()
	if err != nil {
		return "", l.explain(ctx, "rewind "+r.Job, err)
	}
	if err := refused(reply, now); err != nil {
		return "", err
	}
	if len(reply) != 1 {
		return "", fmt.Errorf("rewind %s: %d answers", r.Job, len(reply))
	}
	switch word := text(reply[0]); word {
	case "rewound", "stale":
		return Status(word), nil
	case "held":
		return "", fmt.Errorf("%w: rewind %s: a run of it is in flight or waits to be repeated; wait for it or cancel it", ErrRefused, r.Job)
	case "trimmed":
		return "", fmt.Errorf("%w: rewind %s to %s: the history does not reach back so far; `jobs get` shows where it begins", ErrRefused, r.Job, stamp(r.To))
	case "forward":
		return "", fmt.Errorf("%w: rewind %s to %s: the next tick is not behind that", ErrRefused, r.Job, stamp(r.To))
	default:
		return "", l.refusal("rewind "+r.Job, r.Job, word)
	}
}

type removeArgs struct {
	Job    string `json:"job"`
	Digest string `json:"digest,omitempty"` // of the definition that must be current; "" for any
	Unused bool   `json:"unused,omitempty"` // and the job has no history
}

// Remove deletes a job, but for its definitions, which Tidy deletes when no node announces them any
// more. The caller checks that no living node holds the job: such a node would register it again.
// Remove returns ErrUnknownJob, or ErrRefused while the job runs.
func (l *Ledger) Remove(ctx context.Context, job string) error {
	_, err := l.ask(ctx, "delete job "+job, job, removeScript, []Status{"removed"}, map[Status]error{
		"held": fmt.Errorf("%w: delete job %s: a run of it is in flight; cancel it or wait", ErrRefused, job),
	}, removeArgs{Job: job})
	return err
}

// RemoveDefined is Remove for a job whose current definition has this digest, and reports whether
// it has; any other job stays.
func (l *Ledger) RemoveDefined(ctx context.Context, job, digest string) (bool, error) {
	word, err := l.ask(ctx, "delete job "+job, job, removeScript, []Status{"removed", "used"}, map[Status]error{
		"held": fmt.Errorf("%w: delete job %s: a run of it is in flight; cancel it or wait", ErrRefused, job),
	}, removeArgs{Job: job, Digest: digest})
	return word != "used", err
}

// RemoveUnused is Remove for a job that has run no tick and passed none, and whose current
// definition has this digest. Any other one stays, without an error.
func (l *Ledger) RemoveUnused(ctx context.Context, job, digest string) error {
	_, err := l.ask(ctx, "delete job "+job, job, removeScript, []Status{"removed", "held", "used", "unknown", "foreign"}, nil, removeArgs{job, digest, true})
	return err
}

type postponeArgs struct {
	Job  string `json:"job"`
	Seen int64  `json:"seen"`      // the due time that the caller saw, ms
	At   int64  `json:"at,string"` // the next look, ms
}

// Postpone puts off the next look at an overdue job that no living node holds until an instant, ms.
func (l *Ledger) Postpone(ctx context.Context, seen Late, until int64) error {
	args := postponeArgs{seen.Job, seen.Cursor, until}
	err := postponeScript.call(ctx, l.client, l.tag(seen.Job), "", args).Err()
	return redisconn.Classify("put off "+seen.Job, err)
}

// brief shortens a text to fit into a field of a record.
func brief(s string, most int) string {
	s = plain(s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}

// stamp is an instant as error messages show it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
