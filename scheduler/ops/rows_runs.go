package ops

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

var rowListRuns = read("runs", "runs, those in flight first, and ranges of ticks that did not run", listRuns)

// ListRuns lists runs: first runs in flight, the newest tick first, then recorded runs and ranges
// of ticks that did not run, by their ends. In a namespace of more than 1,000 jobs a page reads the
// runs in flight, and of the histories the newest rows. It reads all histories without a Limit, and
// where the last 1,000 calls' writes do not contain enough: with an Outcome that is rare, far back,
// or soon after a move. Where the history of a job cannot be read, the other jobs' runs come with
// an error that names the job. They also come with an UnreachableError. ListRuns returns ErrRefused
// for an unknown outcome, a negative Limit, and an After that is no place.
func (c *Client) ListRuns(ctx context.Context, f RunFilter) (Page[RunView], error) {
	return call(ctx, c, rowListRuns, f)
}

// RunQuery is the input of GetRun.
type RunQuery struct {
	Run  string        `path:"run"`
	Wait time.Duration `query:"wait_ms" max:"8000"` // how long to wait for the end of the run, ms, at most 8,000
}

var rowGetRun = &Operation[RunQuery, RunView]{
	Info: Info{Method: "GET", Path: "runs/{run}", Role: Viewer, Summary: "one run, with wait_ms when it has ended or that time is over"},
	do:   func(ctx context.Context, c *conn, in RunQuery) (RunView, error) { return getRun(ctx, c, in.Run) }, // the server waits
}

// GetRun finds one run by its id, or by its requested id, and reads its output and payload. It
// returns ErrUnknownRun when neither a run in flight nor the history has it.
func (c *Client) GetRun(ctx context.Context, id string) (RunView, error) {
	return call(ctx, c, rowGetRun, RunQuery{Run: id})
}

// RunByKey finds the run of a unique key, as GetRun does. It returns ErrUnknownRun when the key was
// never used, or its run is neither in flight nor in the history any more.
func (c *Client) RunByKey(ctx context.Context, name, unique string) (RunView, error) {
	return c.GetRun(ctx, ledger.UniqueRun(name, unique))
}

const (
	// WaitMost bounds RunQuery.Wait.
	WaitMost = 8 * time.Second
	// waitAgain is how long WaitRun pauses before it repeats a request to a server with too many
	// callers who wait.
	waitAgain = time.Second
)

// WaitRun returns the run, as GetRun does, when it has ended; a run that may not start yet is
// waited for too. A run that was handed back is followed; a further attempt is a run of its own and
// is not. On Redis, WaitRun polls ten times a second at first, and after ten seconds once a second.
// It returns ctx's error, and ErrUnknownRun when the run is unknown or was removed with its job.
func (c *Client) WaitRun(ctx context.Context, id string) (v RunView, err error) {
	if c.remote == nil {
		return waitRun(ctx, c.conn, id)
	}
	for {
		next, err := call(ctx, c, rowGetRun, RunQuery{id, WaitMost})
		if errors.Is(err, ErrTooMany) && wait.For(ctx, waitAgain) {
			continue
		}
		if err != nil {
			return v, err
		}
		if v = next; !v.Ended.IsZero() {
			return v, nil
		}
		id = v.Run // it may have been handed back
	}
}

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

var rowCancel = &Operation[cancelIn, Cancelled]{
	Info: Info{Method: "POST", Path: "runs/{run}/cancel", Role: Operator, Audit: "runs cancel", Summary: "end a run"},
	do: func(ctx context.Context, c *conn, in cancelIn) (of Cancelled, err error) {
		of.Did, of.job, err = cancelRun(ctx, c, in.Run, in.CancelOptions)
		return of, err
	},
	note: func(in cancelIn, of Cancelled) Action {
		return Action{Target: in.Run, Author: in.Author, Reason: in.Reason, Detail: ofJob(of.job)}
	},
}

// Cancel ends a run, by its id or the id with which it was requested. It does not wait for the
// run's end; WaitRun does. It returns ErrUnknownRun, and ErrRefused when the run has ended with
// another outcome, and for a text that is not UTF-8.
func (c *Client) Cancel(ctx context.Context, id string, o CancelOptions) (Cancellation, error) {
	of, err := call(ctx, c, rowCancel, cancelIn{id, o})
	return of.Did, err
}

var rowRerun = &Operation[runWhy, Asked]{
	Info: Info{Method: "POST", Path: "runs/{run}/rerun", Role: Operator, Audit: "runs rerun", Summary: "ask for one more attempt of a run that has ended"},
	do: func(ctx context.Context, c *conn, in runWhy) (next Asked, err error) {
		next.Run, next.job, err = rerunRun(ctx, c, in.Run)
		return next, err
	},
	note: func(in runWhy, next Asked) Action {
		return Action{Target: in.Run, Reason: in.Reason, Detail: ofJob(next.job)}
	},
}

// Rerun requests one more attempt of a run that has ended, whatever its outcome, and returns the
// attempt's id. A repeated call returns the same id; for a third attempt, rerun the second. The
// attempt has the run's tick and payload, starts also while the job is paused, and waits while
// another run holds the job. It returns ErrUnknownRun, and ErrRefused while the run or another
// attempt of its tick is in flight or pending.
func (c *Client) Rerun(ctx context.Context, id string) (string, error) {
	next, err := call(ctx, c, rowRerun, runWhy{Run: id})
	return next.Run, err
}

type backfillIn struct {
	Named
	BackfillOptions
	Reason string `json:"reason,omitempty"`
}

var rowBackfill = &Operation[backfillIn, BackfillPlan]{
	Info: Info{Method: "POST", Path: "jobs/{name}/backfill", Role: Operator, Audit: "jobs backfill", Summary: "run the ticks that a job has in a range, beside its schedule"},
	do: func(ctx context.Context, c *conn, in backfillIn) (BackfillPlan, error) {
		return beginBackfill(ctx, c, in.Name, in.BackfillOptions)
	},
	dry: func(in backfillIn) bool { return in.DryRun },
	note: func(in backfillIn, plan BackfillPlan) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: in.detail(plan)}
	},
}

// Backfill runs the ticks that a job's schedule has in a range, each once, in their order, whether
// they ran before or not, and moves no cursor. Its runs have the trigger backfill and the tick's
// instant. They neither hold the job nor wait for a run that does; while the job is paused they
// wait. A node that holds the job takes the backfill on, and it goes on when that node dies.
//
// Backfill returns ErrUnknownJob, and ErrRefused for a job that follows another, a range that is
// empty, has no tick or more than 10,000, or lies in the future, a Parallel out of range, and while
// another backfill of the job is under way.
func (c *Client) Backfill(ctx context.Context, name string, o BackfillOptions) (BackfillPlan, error) {
	return call(ctx, c, rowBackfill, backfillIn{Named: Named{name}, BackfillOptions: o})
}

type backfillsIn struct {
	Job string `query:"job"` // only this job
}

var rowBackfills = &Operation[backfillsIn, []BackfillView]{
	Info: Info{Method: "GET", Path: "backfills", Role: Viewer, Summary: "the backfills that are under way, and the last ended one of each job"},
	do: func(ctx context.Context, c *conn, in backfillsIn) ([]BackfillView, error) {
		return listBackfills(ctx, c, in.Job)
	},
}

// ListBackfills lists the running backfills and the last ended one of each job; of one job or, with
// "", of all. It returns ErrUnknownJob for an unknown job. Records in an unknown format are counted
// in an error that wraps ErrUnknownFormat and comes with the other backfills.
func (c *Client) ListBackfills(ctx context.Context, name string) ([]BackfillView, error) {
	return call(ctx, c, rowBackfills, backfillsIn{name})
}

type cancelBackfillIn struct {
	Named
	Reason string `query:"reason"` // why, for the audit and the history
	author string
}

var rowCancelBackfill = &Operation[cancelBackfillIn, BackfillView]{
	Info: Info{Method: "DELETE", Path: "jobs/{name}/backfill", Role: Operator, Audit: "jobs backfill-cancel", Summary: "cancel the backfill of a job that is under way"},
	do: func(ctx context.Context, c *conn, in cancelBackfillIn) (BackfillView, error) {
		return cancelBackfill(ctx, c, in.Name, CancelOptions{Author: in.author, Reason: in.Reason})
	},
	note: func(in cancelBackfillIn, v BackfillView) Action {
		return Action{Target: in.Name, Author: in.author, Reason: in.Reason, Detail: v.ID}
	},
}

// CancelBackfill cancels the backfill of a job that is under way: no further tick of it gets a run.
// Its pending runs are recorded as cancelled, and those in flight end as Cancel ends them. It
// returns the backfill as it was then, without waiting for the ends. It returns ErrRefused when
// none is under way, and for a text that is not UTF-8.
func (c *Client) CancelBackfill(ctx context.Context, name string, o CancelOptions) (BackfillView, error) {
	return call(ctx, c, rowCancelBackfill, cancelBackfillIn{Named{name}, o.Reason, o.Author})
}
