package schedtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/ops"
)

// Operators' actions take no time, because operators have direct access to Redis. Each of these
// methods does one action and notes it as evidence. They must be called with the cluster's lock
// held.

// beside calls f with a connection to Redis of its own, without latency or faults.
func (c *cluster) beside(f func(*ledger.Ledger, *ops.Client) error) error {
	client := c.server.Client()
	defer client.Close()
	l, err := ledger.OpenExisting(context.Background(), client, ledger.Config{Namespace: c.plan.Config.Namespace})
	if err != nil {
		return err
	}
	i, err := ops.New(client, c.plan.Config.Namespace)
	if err != nil {
		return err
	}
	return f(l, i)
}

// done has the operators' actions on a job so far.
func (c *cluster) done(job string) *audit.Job {
	if c.people[job] == nil {
		c.people[job] = &audit.Job{Name: job}
	}
	return c.people[job]
}

// trigger requests a run by hand and returns its id, which is an earlier run's where the key was
// used before.
func (c *cluster) trigger(l *ledger.Ledger, job string, t operate.TriggerRequest) (string, error) {
	id, err := operate.Trigger(context.Background(), l, job, t)
	if err != nil {
		return "", err
	}
	d := c.done(job)
	if !slices.ContainsFunc(d.Asked, func(r audit.Request) bool { return r.Run == id }) {
		d.Asked = append(d.Asked, audit.Request{At: c.nodesTime(), Run: id})
	}
	if c.runs[id] == nil {
		c.runs[id] = &runTrace{id: id, job: job, stage: pending}
	}
	return id, nil
}

func (c *cluster) pause(i *ops.Client, job string, opts ops.PauseOptions) error {
	if err := i.Pause(context.Background(), job, opts); err != nil {
		return err
	}
	now, d := c.nodesTime(), c.done(job)
	c.goesOn(job, now) // the new end counts
	d.Pauses = append(d.Pauses, audit.Span{From: now, Until: opts.Until})
	return nil
}

func (c *cluster) resume(i *ops.Client, job string) error {
	err := i.Resume(context.Background(), job)
	if err == nil {
		c.goesOn(job, c.nodesTime())
	}
	return err
}

// goesOn ends the pauses of a job.
func (c *cluster) goesOn(job string, now time.Time) {
	d := c.done(job)
	for i, p := range d.Pauses {
		if p.Until.IsZero() || p.Until.After(now) {
			d.Pauses[i].Until = now
		}
	}
}

// cancel cancels a run. The status distinguishes a pending run, which is cancelled, from a run in
// flight, which is ordered to end.
func (c *cluster) cancel(l *ledger.Ledger, job, run, reason string) (ledger.Status, error) {
	word, err := operate.Cancel(context.Background(), l, job, run, "ops", reason)
	if err == nil {
		d := c.done(job)
		d.Cancelled = append(d.Cancelled, audit.Cancel{Request: audit.Request{At: c.nodesTime(), Run: run}, Pending: word == operate.Cancelled})
	}
	return word, err
}

// rerun requests one more attempt of a run that has ended, and returns its id. A repeated request
// returns the same attempt.
func (c *cluster) rerun(l *ledger.Ledger, job, run string) (string, error) {
	fresh, err := operate.Rerun(context.Background(), l, job, run)
	if err == nil {
		d := c.done(job)
		d.Reruns = append(d.Reruns, fresh)
	}
	return fresh, err
}

func (c *cluster) rewind(i *ops.Client, job string, to time.Time) error {
	_, err := i.Rewind(context.Background(), job, to)
	if err == nil {
		c.done(job).Rewound = true
	}
	return err
}

func (c *cluster) backfill(i *ops.Client, job string, o ops.BackfillOptions) error {
	_, err := i.Backfill(context.Background(), job, o)
	if err == nil {
		d := c.done(job)
		d.Backfills = append(d.Backfills, audit.Span{From: o.From, Until: o.To.Add(time.Millisecond)})
	}
	return err
}

// cancelBackfill cancels a backfill and its runs.
func (c *cluster) cancelBackfill(l *ledger.Ledger, job, reason string) error {
	b, err := backfill.Cancel(context.Background(), l, job, "ops", reason)
	for _, r := range b.Going {
		d := c.done(job)
		d.Cancelled = append(d.Cancelled, audit.Cancel{Request: audit.Request{At: c.nodesTime(), Run: r.Run}})
	}
	return err
}

// remove forgets a job. Its earlier runs are not judged.
func (c *cluster) remove(i *ops.Client, job string) error {
	err := i.Delete(context.Background(), job, time.Time{})
	if err == nil {
		c.unjudged = append(c.unjudged, job)
	}
	return err
}

// wordOf returns the kind of an error, because texts may change.
func wordOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ledger.ErrRefused):
		return "refused"
	case errors.Is(err, ledger.ErrUnknownJob):
		return "unknown job"
	case errors.Is(err, ledger.ErrUnknownRun):
		return "unknown run"
	default:
		return err.Error()
	}
}

// Trigger requests one run of a job by hand.
type Trigger struct {
	When time.Duration // since the start
	Job  string
}

// pull requests a run by hand, as an operator's tool near Redis does. If Redis is away, or has no
// such job yet, the operator gives up.
func (c *cluster) pull(no int, t Trigger) {
	if !c.redis.up || c.over {
		return
	}
	id := fmt.Sprintf("hand-%d", no)
	err := c.beside(func(l *ledger.Ledger, _ *ops.Client) error {
		_, err := c.trigger(l, t.Job, operate.TriggerRequest{Run: id})
		return err
	})
	if err != nil {
		c.note("hand", "%s of %s is refused: %v", id, t.Job, err)
		return
	}
	c.note("hand", "%s of %s is pending", id, t.Job)
}
