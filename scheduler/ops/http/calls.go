package opshttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// Me asks who the server takes the client for, and which node answers.
func (c *Client) Me(ctx context.Context) (me Me, err error) {
	_, err = c.do(ctx, http.MethodGet, "me", nil, nil, &me)
	return me, err
}

// Namespace asks which namespace the server serves.
func (c *Client) Namespace(ctx context.Context) (n Namespace, err error) {
	_, err = c.do(ctx, http.MethodGet, "namespace", nil, nil, &n)
	return n, err
}

// Now is as ops.Client has it.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	var n Namespace
	_, err := c.do(ctx, http.MethodGet, "namespace", nil, nil, &n)
	return time.Time(n.Now), err
}

// Closed is as ops.Client has it.
func (c *Client) Closed(ctx context.Context) (string, error) {
	var n Namespace
	_, err := c.do(ctx, http.MethodGet, "namespace", nil, nil, &n)
	return n.Closed, err
}

// ListJobs is as ops.Client has it.
func (c *Client) ListJobs(ctx context.Context, f ops.JobFilter) (ops.JobList, error) {
	all, next, err := pages[ops.JobView](ctx, c, "jobs", parameters("q", f.Match), f.After, f.Limit)
	return ops.JobList{Jobs: all, Next: next}, err
}

// JobNames is as ops.Client has it.
func (c *Client) JobNames(ctx context.Context) (names []string, err error) {
	_, err = c.do(ctx, http.MethodGet, "job-names", nil, nil, &names)
	return names, err
}

// Graph is as ops.Client has it.
func (c *Client) Graph(ctx context.Context) (list []ops.GraphJob, err error) {
	_, err = c.do(ctx, http.MethodGet, "graph", nil, nil, &list)
	return list, err
}

// Job is as ops.Client has it.
func (c *Client) GetJob(ctx context.Context, name string) (v ops.JobView, err error) {
	_, err = c.do(ctx, http.MethodGet, "jobs/"+seg(name), nil, nil, &v)
	return v, err
}

// Ticks is as ops.Client has it.
func (c *Client) ListTicks(ctx context.Context, name string, after time.Time, n int) (all []ops.TickView, err error) {
	_, err = c.do(ctx, http.MethodGet, "jobs/"+seg(name)+"/ticks", parameters("from", since(after), "limit", strconv.Itoa(n)), nil, &all)
	return all, err
}

// Trigger is as ops.Client has it.
func (c *Client) Trigger(ctx context.Context, name string, o ops.TriggerOptions) (string, error) {
	var asked Asked
	_, err := c.do(ctx, http.MethodPost, "jobs/"+seg(name)+"/runs", nil, TriggerRequest{o.Payload, stampOf(o.At), o.Unique}, &asked)
	return asked.Run, err
}

func stampOf(t time.Time) *ops.Stamp {
	if t.IsZero() {
		return nil
	}
	s := ops.Stamp(t)
	return &s
}

// Asked is as ops.Client has it.
func (c *Client) RunByKey(ctx context.Context, name, unique string) (ops.RunView, error) {
	return c.GetRun(ctx, ops.UniqueRun(name, unique))
}

// Pause is as ops.Client has it. The author is who the server takes the client for, as in all methods.
func (c *Client) Pause(ctx context.Context, name string, o ops.PauseOptions) error {
	_, err := c.do(ctx, http.MethodPost, "jobs/"+seg(name)+"/pause", nil, PauseRequest{o.Reason, stampOf(o.Until)}, nil)
	return err
}

// Resume is as ops.Client has it.
func (c *Client) Resume(ctx context.Context, name string) error {
	_, err := c.do(ctx, http.MethodPost, "jobs/"+seg(name)+"/resume", nil, Reason{}, nil)
	return err
}

// Remove is as ops.Client has it.
func (c *Client) Remove(ctx context.Context, name string) error {
	_, err := c.do(ctx, http.MethodDelete, "jobs/"+seg(name), nil, nil, nil)
	return err
}

// PutJobs is as ops.Client has it, with a request for each job.
func (c *Client) PutJobs(ctx context.Context, list []jobs.Job, o ops.PutOptions) (stored []ops.StoredJob, err error) {
	q := url.Values{}
	if o.New {
		q.Set("new", "true")
	}
	if o.DryRun {
		q.Set("dry_run", "true")
	}
	if !o.Was.IsZero() {
		q.Set("was", since(o.Was))
	}
	for _, j := range list {
		var s ops.StoredJob
		if _, err := c.do(ctx, http.MethodPut, "jobs/"+seg(j.Name), q, ops.StoredJob{Job: j}, &s); err != nil {
			return stored, err
		}
		stored = append(stored, s)
	}
	return stored, nil
}

// StoredJobs is as ops.Client has it.
func (c *Client) StoredJobs(ctx context.Context, names ...string) (stored []ops.StoredJob, err error) {
	var texts []json.RawMessage
	if _, err = c.do(ctx, http.MethodGet, "stored-jobs", url.Values{"name": names}, nil, &texts); texts == nil {
		return nil, err
	}
	stored = []ops.StoredJob{}
	for _, text := range texts {
		var s ops.StoredJob
		if bad := s.UnmarshalJSON(text); bad != nil {
			err = errors.Join(err, fmt.Errorf("%w: stored job %s: %w", ops.ErrUnknownFormat, s.Name, bad))
			continue
		}
		stored = append(stored, s)
	}
	return stored, err
}

// DeleteJob is as ops.Client has it.
func (c *Client) DeleteJob(ctx context.Context, name string, was time.Time) error {
	_, err := c.do(ctx, http.MethodDelete, "jobs/"+seg(name), parameters("was", since(was)), nil, nil)
	return err
}

// DeleteJobs is as ops.Client has it. The jobs are deleted one after another.
func (c *Client) DeleteJobs(ctx context.Context, list []ops.StoredJob) (deleted []string, err error) {
	for _, j := range list {
		bad := c.DeleteJob(ctx, j.Name, j.Version)
		if err = errors.Join(err, bad); bad == nil {
			deleted = append(deleted, j.Name)
		}
	}
	return deleted, err
}

// Rewind is as ops.Client has it.
func (c *Client) Rewind(ctx context.Context, name string, to time.Time) (time.Time, error) {
	var r Rewound
	_, err := c.do(ctx, http.MethodPost, "jobs/"+seg(name)+"/rewind", nil, RewindRequest{To: stampOf(to)}, &r)
	return time.Time(r.Tick), err
}

// List is as ops.Client has it.
func (c *Client) ListRuns(ctx context.Context, f ops.RunFilter) (ops.RunList, error) {
	all, next, err := pages[ops.RunView](ctx, c, "runs", parameters("job", f.Job, "since", since(f.Since), "outcome", f.Outcome), f.After, f.Limit)
	return ops.RunList{Runs: all, Next: next}, err
}

// Run is as ops.Client has it.
func (c *Client) GetRun(ctx context.Context, id string) (v ops.RunView, err error) {
	_, err = c.do(ctx, http.MethodGet, "runs/"+seg(id), nil, nil, &v)
	return v, err
}

// Cancel is as ops.Client has it.
func (c *Client) Cancel(ctx context.Context, id string, o ops.CancelOptions) (ops.Cancellation, error) {
	var did Cancelled
	_, err := c.do(ctx, http.MethodPost, "runs/"+seg(id)+"/cancel", nil, Reason{o.Reason}, &did)
	return did.Did, err
}

// Rerun is as ops.Client has it.
func (c *Client) Rerun(ctx context.Context, id string) (string, error) {
	var asked Asked
	_, err := c.do(ctx, http.MethodPost, "runs/"+seg(id)+"/rerun", nil, Reason{}, &asked)
	return asked.Run, err
}

// Nodes is as ops.Client has it.
func (c *Client) ListNodes(ctx context.Context) (all []ops.NodeView, err error) {
	_, err = c.do(ctx, http.MethodGet, "nodes", nil, nil, &all)
	return all, err
}

// Drains is as ops.Client has it.
func (c *Client) Drains(ctx context.Context) (all map[string]ops.DrainView, err error) {
	_, err = c.do(ctx, http.MethodGet, "drains", nil, nil, &all)
	return all, err
}

// DrainNode is as ops.Client has it.
func (c *Client) DrainNode(ctx context.Context, name string, o ops.DrainOptions) error {
	_, err := c.do(ctx, http.MethodPost, "nodes/"+seg(name)+"/drain", nil, Reason{o.Reason}, nil)
	return err
}

// ResumeNode is as ops.Client has it.
func (c *Client) ResumeNode(ctx context.Context, name string) error {
	_, err := c.do(ctx, http.MethodPost, "nodes/"+seg(name)+"/resume", nil, Reason{}, nil)
	return err
}

// NodeRests is as ops.Client has it.
func (c *Client) NodeIdle(ctx context.Context, name string) (bool, error) {
	var r Rests
	_, err := c.do(ctx, http.MethodGet, "nodes/"+seg(name)+"/rests", nil, nil, &r)
	return r.Rests, err
}

// Locks is as ops.Client has it.
func (c *Client) ListLocks(ctx context.Context, f ops.LockFilter) (ops.LockList, error) {
	all, next, err := pages[ops.LockView](ctx, c, "locks", parameters("q", f.Match), f.After, f.Limit)
	return ops.LockList{Locks: all, Next: next}, err
}

// Lock is as ops.Client has it.
func (c *Client) GetLock(ctx context.Context, name string) (v ops.LockView, err error) {
	_, err = c.do(ctx, http.MethodGet, "locks/"+seg(name), nil, nil, &v)
	return v, err
}

// ReleaseLock is as ops.Client has it.
func (c *Client) ReleaseLock(ctx context.Context, name string, token int64, o ops.ReleaseOptions) (ops.Release, error) {
	var r ReleaseAnswer
	_, err := c.do(ctx, http.MethodPost, "locks/"+seg(name)+"/release", nil, ReleaseRequest{strconv.FormatInt(token, 10), o.Force, o.Reason}, &r)
	return ops.Release(r), err
}

// Generations is as ops.Client has it.
func (c *Client) ListGenerations(ctx context.Context) (all []ops.GenerationView, err error) {
	_, err = c.do(ctx, http.MethodGet, "generations", nil, nil, &all)
	return all, err
}

// Promote is as ops.Client has it.
func (c *Client) Promote(ctx context.Context, generation string, o ops.PromoteOptions) (p ops.Promotion, err error) {
	if generation == "" {
		generation = unnamed
	}
	_, err = c.do(ctx, http.MethodPost, "generations/"+seg(generation)+"/promote", nil, PromoteRequest{Job: o.Pattern, CancelRunning: o.CancelRunning, Force: o.Force}, &p)
	return p, err
}

// Examine is as ops.Client has it.
func (c *Client) Verify(ctx context.Context, f ops.VerifyFilter) (ops.Verification, error) {
	var v Verified
	_, err := c.do(ctx, http.MethodGet, "verify", parameters("job", f.Job, "since", since(f.Since)), nil, &v)
	return ops.Verification{
		Violations: v.Violations, UnknownFormat: v.LeftAlone, Unverified: v.Unverified, Overdue: v.Overdue, Jobs: v.Checked.Jobs, Rows: v.Checked.Rows, Ticks: v.Checked.Ticks,
	}, err
}

// Problems is as ops.Client has it.
func (c *Client) Problems(ctx context.Context) (all []ops.Problem, err error) {
	_, err = c.do(ctx, http.MethodGet, "problems", nil, nil, &all)
	return all, err
}

// Audit is as ops.Client has it.
func (c *Client) Audit(ctx context.Context, f ops.ActionFilter) (ops.ActionList, error) {
	all, next, err := pages[ops.ActionView](ctx, c, "audit", parameters("since", since(f.Since), "who", f.Who), f.After, f.Limit)
	return ops.ActionList{Actions: all, Next: next}, err
}
