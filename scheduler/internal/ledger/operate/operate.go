// Package operate carries out requests of people: run, cancel, rerun, pause, rewind, remove; and
// keeps the audit of such actions.
package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	rerunScript  = ledger.Ship("operate/rerun", rerunArgs{})
	cancelScript = ledger.Ship("operate/cancel", cancelArgs{})
	pauseScript  = ledger.Ship("operate/pause", pauseArgs{})
	rewindScript = ledger.Ship("operate/rewind", rewindArgs{})
	removeScript = ledger.Ship("operate/remove", removeArgs{})
)

// The answers of Cancel.
const (
	Flagged   ledger.Status = "told"      // it is going; its node ends it at its next look
	Cancelled ledger.Status = "cancelled" // it was pending, and is recorded as cancelled
)

type cancelArgs struct {
	ledger.Clocked
	ledger.Retained

	Job    string `json:"job"`
	Run    string `json:"run"`
	Author string `json:"author"`
	Reason string `json:"reason"`
}

// Cancel ends a run for an operator. It returns Flagged for a run in flight, Cancelled for a pending
// one, ErrUnknownRun, ErrRefused for a run that has ended, or ErrClosed for a pending run of a
// namespace that moves.
func Cancel(ctx context.Context, l *ledger.Ledger, job, run, author, reason string) (ledger.Status, error) {
	return l.Ask(ctx, "cancel "+run, job, cancelScript, []ledger.Status{Flagged, Cancelled}, map[ledger.Status]error{
		"ended":          fmt.Errorf("%w: run %s has ended; `runs get` shows how", ledger.ErrRefused, run),
		ledger.NoSuchRun: fmt.Errorf("%w: %s of job %s", ledger.ErrUnknownRun, run, job),
	}, cancelArgs{l.Timed(ctx), l.Retained(), job, run, cmp.Or(ledger.Brief(author, ledger.MaxAuthor), "somebody"), ledger.Brief(reason, ledger.MaxReason)})
}

type rerunArgs struct {
	ledger.Clocked

	Job        string   `json:"job"`
	Run        string   `json:"run"`
	Fresh      string   `json:"fresh"`      // id of the next attempt
	Successors []string `json:"successors"` // ids under which that may go on
	Most       int      `json:"most"`       // pending runs in a partition
}

// Rerun requests one more attempt of an ended run, and returns the attempt's run id, the same each
// time. It returns ErrUnknownRun, or ErrRefused while the run or another attempt of its tick is in
// flight or pending.
func Rerun(ctx context.Context, l *ledger.Ledger, job, run string) (string, error) {
	fresh := ledger.NextAttemptID(run)
	_, err := l.Ask(ctx, "rerun "+run, job, rerunScript, []ledger.Status{"queued"}, map[ledger.Status]error{
		"running":        fmt.Errorf("%w: run %s has not ended; cancel it first, or wait", ledger.ErrRefused, run),
		"going":          fmt.Errorf("%w: rerun %s: another attempt of its tick is going or still to come; wait for that one", ledger.ErrRefused, run),
		ledger.NoSuchRun: fmt.Errorf("%w: %s of job %s", ledger.ErrUnknownRun, run, job),
	}, rerunArgs{l.Timed(ctx), job, run, fresh, ledger.LaterAttemptIDs(fresh), ledger.PendingMax})
	if err != nil {
		return "", err
	}
	return fresh, nil
}

type pauseArgs struct {
	ledger.Clocked

	Job    string `json:"job"`
	Resume bool   `json:"resume"`
	Author string `json:"author"`
	Reason string `json:"reason"`
	Till   int64  `json:"till,string,omitempty"` // ms; 0 for no end
}

// Pause pauses a job: unclaimed ticks, and those up to Until, are recorded as paused. A repeated
// pause takes the new end and reason. Pause returns ErrUnknownJob, or ErrRefused for an end that is
// over.
func Pause(ctx context.Context, l *ledger.Ledger, job string, p ledger.Pause) error {
	return pause(ctx, l, "pause", pauseArgs{l.Timed(ctx), job, false, ledger.Brief(p.Author, ledger.MaxAuthor), ledger.Brief(p.Reason, ledger.MaxReason), p.Until})
}

// Resume ends a job's pause, if there is one.
func Resume(ctx context.Context, l *ledger.Ledger, job string) error {
	return pause(ctx, l, "resume", pauseArgs{Clocked: l.Timed(ctx), Job: job, Resume: true})
}

func pause(ctx context.Context, l *ledger.Ledger, op string, args pauseArgs) error {
	_, err := l.Ask(ctx, op+" "+args.Job, args.Job, pauseScript, []ledger.Status{"done"}, map[ledger.Status]error{
		"over": fmt.Errorf("%w: pause %s: the end given is over by Redis' clock", ledger.ErrRefused, args.Job),
	}, args)
	return err
}

// Pauses reads the authors and reasons of pauses. Jobs without a pause record are left out. Whether
// a job is paused now is in its Entry's Pause.
func Pauses(ctx context.Context, l *ledger.Ledger, names ...string) (map[string]ledger.Pause, error) {
	got, err := ledger.Queue(ctx, l, names, func(p redis.Pipeliner, name string) *redis.StringCmd {
		return p.HGet(ctx, l.Keys[l.Partition(name)].Pauses, name)
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.Explain(ctx, "read pauses", err)
	}
	pauses := make(map[string]ledger.Pause)
	for i, name := range names {
		if err := got[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, l.Explain(ctx, "read pauses", err)
		}
		var p ledger.Pause
		if p.ReadPause(got[i].Val()) == nil { // otherwise there is no record, or this version cannot read it
			pauses[name] = p
		}
	}
	return pauses, nil
}

// RewindRequest is a request to set a job's cursor back from where the caller saw it.
type RewindRequest struct {
	Job, Digest string
	From, To    int64 // the cursor seen, and the tick to begin with again; ms
}

type rewindArgs struct {
	ledger.Clocked
	ledger.Retained

	Job    string `json:"job"`
	Digest string `json:"digest"`
	From   int64  `json:"from,string,omitempty"`
	To     int64  `json:"to,string"`
	Reach  int64  `json:"reach"` // how far before Redis' time a history that begins in the future goes back, ms
}

// The answers of Rewind.
const (
	Rewound   ledger.Status = "rewound"
	Elsewhere ledger.Status = "stale" // the cursor or the definition is another one now: read it anew
)

// Rewind sets a cursor back: ticks that were accounted for are claimed once more, as a later
// attempt than any recorded. It returns Rewound or Elsewhere, ErrClock, ErrUnknownJob, or
// ErrRefused while a run holds the job, for a tick before the history's beginning, and for a tick
// that is not behind.
func Rewind(ctx context.Context, l *ledger.Ledger, now int64, r RewindRequest) (ledger.Status, error) {
	reach := min(l.Config.KeepFor, ledger.DefaultKeepFor) // a client trims no history, and has no KeepFor of its own
	args := rewindArgs{l.Clocked(now), l.Retained(), r.Job, r.Digest, r.From, r.To, reach.Milliseconds()}
	reply, err := rewindScript.Call(ctx, l.Client, l.Tag(r.Job), r.Job, args).Slice()
	if err != nil {
		return "", l.Explain(ctx, "rewind "+r.Job, err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return "", err
	}
	if len(reply) != 1 {
		return "", fmt.Errorf("rewind %s: %d answers", r.Job, len(reply))
	}
	switch word := ledger.Text(reply[0]); word {
	case "rewound", "stale":
		return ledger.Status(word), nil
	case "held":
		return "", fmt.Errorf("%w: rewind %s: a run of it is in flight or waits to be repeated; wait for it or cancel it", ledger.ErrRefused, r.Job)
	case "trimmed":
		return "", fmt.Errorf("%w: rewind %s to %s: the history does not reach back so far; `jobs get` shows where it begins", ledger.ErrRefused, r.Job, stamp(r.To))
	case "forward":
		return "", fmt.Errorf("%w: rewind %s to %s: the next tick is not behind that", ledger.ErrRefused, r.Job, stamp(r.To))
	default:
		return "", l.Refusal("rewind "+r.Job, r.Job, word)
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
func Remove(ctx context.Context, l *ledger.Ledger, job string) error {
	_, err := l.Ask(ctx, "delete job "+job, job, removeScript, []ledger.Status{"removed"}, map[ledger.Status]error{
		"held": fmt.Errorf("%w: delete job %s: a run of it is in flight; cancel it or wait", ledger.ErrRefused, job),
	}, removeArgs{Job: job})
	return err
}

// RemoveDefined is Remove for a job whose current definition has this digest, and reports whether
// it has; any other job stays.
func RemoveDefined(ctx context.Context, l *ledger.Ledger, job, digest string) (bool, error) {
	word, err := l.Ask(ctx, "delete job "+job, job, removeScript, []ledger.Status{"removed", "used"}, map[ledger.Status]error{
		"held": fmt.Errorf("%w: delete job %s: a run of it is in flight; cancel it or wait", ledger.ErrRefused, job),
	}, removeArgs{Job: job, Digest: digest})
	return word != "used", err
}

// RemoveUnused is Remove for a job that has run no tick and passed none, and whose current
// definition has this digest. Any other one stays, without an error.
func RemoveUnused(ctx context.Context, l *ledger.Ledger, job, digest string) error {
	_, err := l.Ask(ctx, "delete job "+job, job, removeScript, []ledger.Status{"removed", "held", "used", "unknown", "foreign"}, nil, removeArgs{job, digest, true})
	return err
}

// stamp is an instant as error messages show it.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(spec.TimeLayout) }
