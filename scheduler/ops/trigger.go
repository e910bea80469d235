package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// TriggerOptions are the options of Trigger. The zero value runs the job now, without a payload.
type TriggerOptions struct {
	// Payload is passed to the function: JSON, at most 64 KiB, and 1 KiB while 256 runs of the
	// job's partition are due and wait. Default none.
	Payload json.RawMessage `json:"payload,omitempty"`
	// At is when to run, and the run's tick, in whole milliseconds, from 1970 to 9999. A past
	// instant runs at once. Default now.
	At time.Time `json:"at,omitempty"`
	// Unique identifies the request within its job: a request with the same key returns the first
	// one's run, and its own payload and time are ignored. The key is kept for 168 h after At (or
	// after now), and as long as the history has the run. Default none: each request makes a run.
	Unique string `json:"unique,omitempty" header:"Idempotency-Key"`
}

type triggerIn struct {
	named
	TriggerOptions
}

// Asked names the requested run.
type Asked struct {
	Run string `json:"run"`
	job string
}

var rowTrigger = row(&Operation[triggerIn, Asked]{
	Info: Info{Method: "POST", Path: "jobs/{name}/runs", Role: Operator, Audit: "jobs run", Summary: "run a job outside its schedule"},
	do: func(ctx context.Context, c *conn, in triggerIn) (Asked, error) {
		id, err := triggerJob(ctx, c, in.Name, in.TriggerOptions)
		return Asked{Run: id}, err
	},
	note: func(in triggerIn, out Asked) Action { return Action{Target: in.Name, Detail: in.detail(out.Run)} },
})

// Trigger requests one run of a job outside its schedule, and returns the run's id. The run also
// starts while the job is paused, and waits while another run holds the job. It returns
// ErrUnknownJob, and ErrRefused for a payload that is not JSON or too large, an instant out of
// range, too many pending runs, or a stored job that no node has taken within two seconds. If the
// answer is lost, only a request with Unique can be repeated without making a second run.
func (c *Client) Trigger(ctx context.Context, name string, o TriggerOptions) (id string, err error) {
	asked, err := call(ctx, c, rowTrigger, triggerIn{named{name}, o})
	return asked.Run, err
}

// takenWithin is how long Trigger waits for a node to take a job that is stored.
const takenWithin = 2 * time.Second

func triggerJob(ctx context.Context, c *conn, name string, o TriggerOptions) (id string, err error) {
	if len(o.Payload) > 0 && !json.Valid(o.Payload) {
		return "", fmt.Errorf("%w: run %s: the payload is not JSON; quote a plain text: '\"text\"'", ErrRefused, name)
	}
	at, err := instant("run "+name, o.At)
	if err != nil {
		return "", err
	}
	l, err := c.Open(ctx)
	if err != nil {
		return "", err
	}
	want := operate.TriggerRequest{Run: newID(), Payload: o.Payload, At: at, Unique: o.Unique}
	id, err = trigger(ctx, l, name, want)
	if errors.Is(err, locking.ErrUnreachable) && o.Unique == "" {
		err = fmt.Errorf("%w; if the request arrived all the same, it is run %s", err, want.Run)
	}
	return id, err
}

// trigger also waits until a node has registered a job that was stored a moment ago.
func trigger(ctx context.Context, l *ledger.Ledger, name string, want operate.TriggerRequest) (string, error) {
	for until := time.Now().Add(takenWithin); ; {
		id, err := operate.Trigger(ctx, l, name, want)
		if !errors.Is(err, ErrUnknownJob) {
			return id, err
		}
		found, failed := catalog.Jobs(ctx, l, name)
		switch {
		case failed != nil:
			return "", failed
		case found[0].Version == 0:
			return "", err
		case time.Now().After(until) || !wait.For(ctx, takenWithin/20):
			return "", fmt.Errorf("%w: run %s: it is stored, and no node has taken it yet; try again in a second, and see that a node with its handler lives", ErrRefused, name)
		}
	}
}

// detail is the request in words. The payload is not shown: it may be confidential.
func (o TriggerOptions) detail(id string) string {
	words := []string{}
	if id != "" {
		words = append(words, "run "+id)
	}
	if !o.At.IsZero() {
		words = append(words, "at "+FormatTime(o.At))
	}
	if o.Unique != "" {
		words = append(words, "unique "+o.Unique)
	}
	if n := len(o.Payload); n > 0 {
		words = append(words, fmt.Sprintf("payload of %d bytes", n))
	}
	return strings.Join(words, ", ")
}

// CancelOptions are who cancels a run, and why. The zero value is useful.
type CancelOptions struct {
	// Author is who cancels it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for readers of the history; at most 256 bytes are kept. Default none.
	Reason string `json:"reason,omitempty"`
}

// Cancellation is the result of Cancel.
type Cancellation string

// The results of Cancel.
const (
	// CancelTold: the run is in flight. Its node ends its context within sweep_every, with the
	// cause jobs.ErrCancelled. If the function returns before that, its own result counts.
	CancelTold Cancellation = "told"
	// CancelRecorded: the run was pending, and is recorded as cancelled, by this call or an earlier
	// one.
	CancelRecorded Cancellation = "recorded"
)

type runWhy struct {
	Run    string `path:"run"`
	Reason string `json:"reason,omitempty"`
}

type cancelIn struct {
	Run string `path:"run"`
	CancelOptions
}

// Cancelled is the result of a request to cancel: told or recorded.
type Cancelled struct {
	Did Cancellation `json:"did"`
	job string
}

var rowCancel = row(&Operation[cancelIn, Cancelled]{
	Info: Info{Method: "POST", Path: "runs/{run}/cancel", Role: Operator, Audit: "runs cancel", Summary: "end a run"},
	do: func(ctx context.Context, c *conn, in cancelIn) (of Cancelled, err error) {
		of.Did, of.job, err = cancelRun(ctx, c, in.Run, in.CancelOptions)
		return of, err
	},
	note: func(in cancelIn, of Cancelled) Action {
		return Action{Target: in.Run, Author: in.Author, Reason: in.Reason, Detail: ofJob(of.job)}
	},
})

// Cancel ends a run, by its id or the id with which it was requested. It does not wait for the
// run's end; WaitRun does. It returns ErrUnknownRun, and ErrRefused when the run has ended with
// another outcome, and for a text that is not UTF-8.
func (c *Client) Cancel(ctx context.Context, id string, o CancelOptions) (Cancellation, error) {
	of, err := call(ctx, c, rowCancel, cancelIn{id, o})
	return of.Did, err
}

func cancelRun(ctx context.Context, c *conn, id string, o CancelOptions) (did Cancellation, job string, err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	if err := utf8Only("cancel run "+id, o.Author, o.Reason); err != nil {
		return "", job, err
	}
	l, err := c.OpenAppend(ctx)
	if err != nil {
		return "", job, err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", job, cut(ctx, "cancel run "+id, err)
	}
	job = r.Job()
	word, err := operate.Cancel(ctx, l, r.Job(), r.ID(), author(o.Author), wire.OneLine(o.Reason))
	if errors.Is(err, ErrUnknownRun) && r.Lease != nil { // it was handed back meanwhile, and goes on with another id
		if r, _, err = inspect.Refresh(ctx, l, *r.Lease, id); err != nil {
			return "", job, cut(ctx, "cancel run "+id, err)
		}
		word, err = operate.Cancel(ctx, l, r.Job(), r.ID(), author(o.Author), wire.OneLine(o.Reason))
	}
	switch {
	case err != nil:
		return "", job, err
	case word == operate.Flagged:
		return CancelTold, job, nil
	default:
		return CancelRecorded, job, nil
	}
}

var rowRerun = row(&Operation[runWhy, Asked]{
	Info: Info{Method: "POST", Path: "runs/{run}/rerun", Role: Operator, Audit: "runs rerun", Summary: "ask for one more attempt of a run that has ended"},
	do: func(ctx context.Context, c *conn, in runWhy) (next Asked, err error) {
		next.Run, next.job, err = rerunRun(ctx, c, in.Run)
		return next, err
	},
	note: func(in runWhy, next Asked) Action {
		return Action{Target: in.Run, Reason: in.Reason, Detail: ofJob(next.job)}
	},
})

// Rerun requests one more attempt of a run that has ended, whatever its outcome, and returns the
// attempt's id. A repeated call returns the same id; for a third attempt, rerun the second. The
// attempt has the run's tick and payload, starts also while the job is paused, and waits while
// another run holds the job. It returns ErrUnknownRun, and ErrRefused while the run or another
// attempt of its tick is in flight or pending.
func (c *Client) Rerun(ctx context.Context, id string) (string, error) {
	next, err := call(ctx, c, rowRerun, runWhy{Run: id})
	return next.Run, err
}

func rerunRun(ctx context.Context, c *conn, id string) (next, job string, err error) {
	l, err := c.OpenAppend(ctx)
	if err != nil {
		return "", job, err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", job, cut(ctx, "rerun "+id, err)
	}
	job = r.Job()
	next, err = operate.Rerun(ctx, l, r.Job(), r.ID())
	return next, job, err
}

func ofJob(job string) string {
	if job == "" {
		return ""
	}
	return "of job " + job
}
