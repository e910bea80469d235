package opshttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// recorded is a remote that notes the operations of its calls.
type recorded struct {
	ops.Remote
	seen map[string]bool // by method and path
}

func (r recorded) Do(ctx context.Context, by ops.Actor, o ops.Row, in, out any) error {
	r.seen[o.About().Method+" "+o.About().Path] = true
	return r.Remote.Do(ctx, by, o, in, out)
}

// TestTransports: each operation gives the same output and the same error on Redis and over HTTP.
// The operations stand in an order in which none takes away what the next one needs; what carries
// the instant of its call is compared without it.
func TestTransports(t *testing.T) {
	w := begin(t, Config{})
	noting := recorded{&remote{base: w.http.URL + Prefix, cfg: ClientConfig{HTTP: http.DefaultClient}}, make(map[string]bool)}
	far := ops.NewRemote(noting)
	pick := func(v any, err error) (any, error) { return v, err }
	stored := jobs.Job{Name: "tenant/7", Handler: "mail", Schedule: "@yearly"}
	id := must(w.client.Trigger(t.Context(), "fails/often", ops.TriggerOptions{Unique: "k"}))
	must(w.client.WaitRun(t.Context(), id))
	w.eventually("a run has succeeded", func() bool {
		return len(must(w.client.ListRuns(t.Context(), ops.RunFilter{Job: "each-second", Outcome: jobs.OutcomeSucceeded.String()})).Items) > 0
	})
	for name, do := range map[string]func(context.Context, *ops.Client) (any, error){
		"namespace": func(ctx context.Context, c *ops.Client) (any, error) {
			n, err := c.Namespace(ctx)
			return []string{n.Name, n.Closed}, err
		},
		"overview": func(ctx context.Context, c *ops.Client) (any, error) {
			o, err := c.Overview(ctx)
			return o.Paused, err
		},
		"nodes": func(ctx context.Context, c *ops.Client) (any, error) {
			list, err := c.ListNodes(ctx)
			return list[0].ID, err
		},
		"last success": func(ctx context.Context, c *ops.Client) (any, error) {
			at, err := c.LastSuccess(ctx, "each-second", "fails/often", "nope")
			return []bool{!at["each-second"].IsZero(), len(at) == 1}, err
		},
		"no such job": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.GetJob(ctx, "nope")) },
		"job":         func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.GetJob(ctx, "shards")) },
		"jobs": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListJobs(ctx, ops.JobFilter{Match: "s", Limit: 1, After: "follows"}))
		},
		"job names": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.JobNames(ctx)) },
		"graph":     func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.Graph(ctx)) },
		"handlers":  func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.ListHandlers(ctx)) },
		"ticks": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListTicks(ctx, "shards", time.Unix(1e9, 5e6), 3))
		},
		"preview": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Preview(ctx, jobs.Job{Schedule: "@yearly", Jitter: time.Minute, Except: []string{"2030-01-01"}}, 2))
		},
		"faults": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.PutJob(ctx, jobs.Job{Name: "x", Handler: "mail", Schedule: "x"}, ops.PutOptions{}))
		},
		"put, dry": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.PutJob(ctx, stored, ops.PutOptions{DryRun: true, New: true}))
		},
		"stored jobs":   func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.StoredJobs(ctx)) },
		"no stored job": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.StoredJobs(ctx, "nope")) },
		"again, by key": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Trigger(ctx, "fails/often", ops.TriggerOptions{Unique: "k"}))
		},
		"no payload": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Trigger(ctx, "nope", ops.TriggerOptions{At: time.Unix(1e9, 0)}))
		},
		"run": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.GetRun(ctx, id)) },
		"run by key": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.RunByKey(ctx, "fails/often", "k"))
		},
		"waited for": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.WaitRun(ctx, id)) },
		"runs": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListRuns(ctx, ops.RunFilter{Job: "fails/often", Since: time.Unix(1e9, 0), Outcome: "failed"}))
		},
		"no outcome": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListRuns(ctx, ops.RunFilter{Outcome: "odd"}))
		},
		"cancelled ended": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Cancel(ctx, id, ops.CancelOptions{Reason: "x"}))
		},
		"rerun of none": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.Rerun(ctx, "nope")) },
		"no reason": func(ctx context.Context, c *ops.Client) (any, error) {
			return nil, c.Pause(ctx, "slow", ops.PauseOptions{})
		},
		"resumed":         func(ctx context.Context, c *ops.Client) (any, error) { return nil, c.Resume(ctx, "slow") },
		"rewound nowhere": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.Rewind(ctx, "slow", time.Time{})) },
		"delete held":     func(ctx context.Context, c *ops.Client) (any, error) { return nil, c.Delete(ctx, "slow", time.Time{}) },
		"backfill, dry": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Backfill(ctx, "shards", ops.BackfillOptions{From: time.Unix(1.6e9, 0), To: time.Unix(1.601e9, 0), Parallel: 2, DryRun: true}))
		},
		"backfill of none": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Backfill(ctx, "shards", ops.BackfillOptions{}))
		},
		"backfills": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.ListBackfills(ctx, "shards")) },
		"no backfill": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.CancelBackfill(ctx, "shards", ops.CancelOptions{Reason: "x"}))
		},
		"drains": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.Drains(ctx)) },
		"no such node": func(ctx context.Context, c *ops.Client) (any, error) {
			return nil, c.DrainNode(ctx, "b7", ops.DrainOptions{})
		},
		"resumed none": func(ctx context.Context, c *ops.Client) (any, error) { return nil, c.ResumeNode(ctx, "b7") },
		"idle":         func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.NodeIdle(ctx, "b7")) },
		"no lock":      func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.GetLock(ctx, "nope")) },
		"no grant": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ReleaseLock(ctx, "nope", 7, ops.ReleaseOptions{Force: true}))
		},
		"locks": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListLocks(ctx, ops.LockFilter{Match: "nope"}))
		},
		"generations": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.ListGenerations(ctx)) },
		"promoted": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Promote(ctx, "", ops.PromoteOptions{Pattern: "sl*"}))
		},
		"no generation": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Promote(ctx, "green", ops.PromoteOptions{}))
		},
		"verify": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Verify(ctx, ops.VerifyFilter{Job: "shards"}))
		},
		"problems": func(ctx context.Context, c *ops.Client) (any, error) { return pick(c.Problems(ctx)) },
		"ends": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListEnds(ctx, []string{"fails/often", "nope"}, 2))
		},
		"no ticks": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListTicks(ctx, "shards", time.Time{}, 0))
		},
		"too many": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListTicks(ctx, "shards", time.Time{}, 1001))
		},
		"no preview": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Preview(ctx, jobs.Job{Schedule: "@yearly"}, 0))
		},
		"no ends": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListEnds(ctx, []string{"shards"}, 0))
		},
		"jobs, -1": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListJobs(ctx, ops.JobFilter{Limit: -1}))
		},
		"runs, -1": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListRuns(ctx, ops.RunFilter{Limit: -1}))
		},
		"locks, -1": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ListLocks(ctx, ops.LockFilter{Limit: -1}))
		},
		"audit, -1": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Audit(ctx, ops.ActionFilter{Limit: -1}))
		},
		"no token": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.ReleaseLock(ctx, "nope", 0, ops.ReleaseOptions{}))
		},
		"deleted": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.DeleteJobs(ctx, []ops.StoredJob{{Job: jobs.Job{Name: "slow"}}, {Job: jobs.Job{Name: "nope"}}}))
		},
		"audit": func(ctx context.Context, c *ops.Client) (any, error) {
			return pick(c.Audit(ctx, ops.ActionFilter{Who: "nobody", Limit: 5}))
		},
	} {
		here, bad := do(t.Context(), w.client)
		there, worse := do(t.Context(), far)
		one, two := string(must(ops.Encode(here))), string(must(ops.Encode(there)))
		if _, _, other := ops.Incomplete(bad); other == nil && one != two {
			t.Errorf("%s:\n%.1500s on Redis\n%.1500s over HTTP", name, one, two)
		}
		for _, of := range []error{ops.ErrUnknownJob, ops.ErrUnknownRun, ops.ErrUnknownNode, ops.ErrUnknownLock, ops.ErrRefused, ops.ErrUnknownFormat} {
			if errors.Is(bad, of) != errors.Is(worse, of) {
				t.Errorf("%s: %v, and %v over HTTP", name, bad, worse)
			}
		}
		if (bad == nil) != (worse == nil) || bad != nil && !strings.Contains(worse.Error(), bad.Error()) {
			t.Errorf("%s: %v, and %v over HTTP", name, bad, worse)
		}
	}
	for _, o := range ops.Operations() {
		if at := o.About().Method + " " + o.About().Path; !noting.seen[at] {
			t.Errorf("%s has no case here", at)
		}
	}
}
