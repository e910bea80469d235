package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// OutcomePending, as the Outcome of a RunFilter, selects runs that have not been granted yet. The
// Reason of such a run begins with this word, and has nothing more when the run only waits for a
// node's next sweep.
const OutcomePending = inspect.Pending // "pending"

// RunFilter restricts ListRuns; zero fields do not.
type RunFilter struct {
	Job     string    `query:"job"`                                    // only this job
	Since   time.Time `query:"since"`                                  // by when they ended; those in flight by their ticks
	Outcome string    `query:"outcome"`                                // only runs that ended so, or are running or pending
	Limit   int       `query:"limit" default:"100" min:"1" max:"1000"` // newest ones; 0 is all
	After   string    `query:"after"`                                  // the page begins behind this place: Next of the page before
	// Recent, with a Limit, lists runs in flight, and of the histories the writes of the last 1,000
	// calls: it never reads all histories.
	Recent bool
}

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

func listRuns(ctx context.Context, c *conn, f RunFilter) (Page[RunView], error) {
	if err := f.check(); err != nil {
		return Page[RunView]{}, err
	}
	l, parts, n, left, err := partsOf(ctx, c, f.Job)
	if err != nil {
		return Page[RunView]{}, err
	}
	found, unread, err := inspect.Filter{Job: f.Job, Since: f.Since, Outcome: f.Outcome, Limit: f.Limit, After: f.After, Recent: f.Recent}.List(ctx, l, parts, n)
	if err != nil {
		return Page[RunView]{}, cut(ctx, "list runs", err)
	}
	views, err := runViews(ctx, c, l, found.Runs)
	return Page[RunView]{Items: views, Next: found.Next, UnknownFormat: found.UnknownFormat}, errors.Join(append(unread, cut(ctx, "list runs", err), left)...)
}

func (f RunFilter) check() error {
	if f.Outcome == "" || f.Outcome == OutcomePending {
		return nil
	}
	if err := new(jobs.Outcome).UnmarshalText([]byte(f.Outcome)); err != nil {
		return &InputError{fmt.Sprintf("list runs: %v, or %s", err, OutcomePending)}
	}
	return nil
}

// partsOf are the partitions that have the job of that name, or with "" some job, and how many jobs
// that are. left is an UnreachableError.
func partsOf(ctx context.Context, c *conn, job string) (l *ledger.Ledger, parts []int, n int, left, err error) {
	if l, err = c.Open(ctx); err != nil {
		return nil, nil, 0, nil, err
	}
	if job != "" {
		_, err = query.Job(ctx, l, job)
		return l, []int{l.Partition(job)}, 1, nil, err
	}
	n, parts, err = query.Count(ctx, l)
	left, err = beside(err)
	return l, parts, n, left, err
}

// RunQuery is the input of GetRun.
type RunQuery struct {
	Run  string        `path:"run"`
	Wait time.Duration `query:"wait_ms" max:"8000"` // how long to wait for the end of the run, ms, at most 8,000
}

var rowGetRun = row(&Operation[RunQuery, RunView]{
	Info: Info{Method: "GET", Path: "runs/{run}", Role: Viewer, Summary: "one run, with wait_ms when it has ended or that time is over"},
	do:   func(ctx context.Context, c *conn, in RunQuery) (RunView, error) { return getRun(ctx, c, in.Run) }, // the server waits
})

// GetRun finds one run by its id, or by its requested id, and reads its output and payload. It
// returns ErrUnknownRun when neither a run in flight nor the history has it.
func (c *Client) GetRun(ctx context.Context, id string) (RunView, error) {
	return call(ctx, c, rowGetRun, RunQuery{Run: id})
}

// RunByKey finds the run of a unique key, as GetRun does. It returns ErrUnknownRun when the key was
// never used, or its run is neither in flight nor in the history any more.
func (c *Client) RunByKey(ctx context.Context, name, unique string) (RunView, error) {
	return c.GetRun(ctx, operate.UniqueRun(name, unique))
}

func getRun(ctx context.Context, c *conn, id string) (RunView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return RunView{}, err
	}
	v, _, err := readRun(ctx, c, l, id)
	return v, cut(ctx, "look for run "+id, err)
}

func readRun(ctx context.Context, c *conn, l *ledger.Ledger, id string) (RunView, inspect.Run, error) {
	r, err := locate(ctx, l, id)
	if err != nil {
		return RunView{}, r, err
	}
	views, err := runViews(ctx, c, l, []inspect.Run{r})
	if err == nil {
		err = enrich(ctx, l, r, &views[0])
	}
	return views[0], r, err
}

// locate finds a run among all jobs' runs. A run that no reachable master has may be at another
// one.
func locate(ctx context.Context, l *ledger.Ledger, id string) (r inspect.Run, err error) {
	names, err := query.Names(ctx, l, l.All())
	left, err := beside(err)
	if err != nil {
		return r, err
	}
	slices.Sort(names)
	r, err = inspect.Find(ctx, l, names, id)
	if left != nil && errors.Is(err, ErrUnknownRun) {
		err = fmt.Errorf("run %q is not among those that can be read: %w", id, left)
	}
	return r, err
}

// enrich reads a run's output, payload, next attempt and requests to cancel.
func enrich(ctx context.Context, l *ledger.Ledger, r inspect.Run, v *RunView) error {
	if r.Lease != nil {
		var tail []byte
		if !r.Lease.Pending() && !r.Lease.IsOpenTick {
			var err error
			if tail, _, err = query.Kept(ctx, l, v.Job, v.Run); err != nil {
				return err
			}
		}
		v.keep(tail, r.Lease.Payload)
		cancels, err := query.Cancels(ctx, l, l.Partition(v.Job))
		for _, c := range cancels {
			if c.Run == v.Run {
				v.Note = cancelNote(c)
			}
		}
		return err
	}
	output, payload, err := query.Kept(ctx, l, v.Job, v.Run)
	if err != nil {
		return err
	}
	v.keep(output, payload)
	v.NextAttempt, err = inspect.NextAttempt(ctx, l, *r.Row)
	return err
}

func cancelNote(c ledger.Cancel) string {
	if c.Author == "" {
		return "a newer tick is to replace it"
	}
	note := "to be cancelled by " + c.Author
	if c.Reason != "" {
		note += ": " + c.Reason
	}
	return note
}

const (
	// runWaitMost bounds RunQuery.Wait.
	runWaitMost = 8 * time.Second
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
		next, err := call(ctx, c, rowGetRun, RunQuery{id, runWaitMost})
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

// WaitRun looks after waitEvery at first, then after a tenth of the time it has waited, and at
// least each waitMost.
const (
	waitEvery = 100 * time.Millisecond
	waitMost  = time.Second
)

func waitRun(ctx context.Context, c *conn, id string) (RunView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return RunView{}, err
	}
	v, r, err := readRun(ctx, c, l, id)
	if err != nil {
		return v, cut(ctx, "look for run "+id, err)
	}
	var waited time.Duration
	for r.Lease != nil {
		d := min(max(waited/10, waitEvery), waitMost)
		wait.For(ctx, d)
		waited += d
		next, now, err := inspect.Refresh(ctx, l, *r.Lease, id)
		if over := ended(ctx); over != nil { // in the middle of a read that looks as if Redis did not answer
			return v, fmt.Errorf("wait for run %s: %w", id, over)
		}
		if err != nil {
			return v, err
		}
		if v, r, id = runView(next), next, now; r.Lease != nil {
			v.keep(nil, r.Lease.Payload)
		}
	}
	err = enrich(ctx, l, r, &v)
	return v, err
}

// ended is the cause of ctx's end. A connection can notice its deadline a moment before ctx does.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// cut is err, or the end of ctx if it ended a read that Redis was answering.
func cut(ctx context.Context, op string, err error) error {
	if over := ended(ctx); err != nil && over != nil && !errors.As(err, new(*UnreachableError)) {
		return fmt.Errorf("%s: %w", op, over)
	}
	return err
}
