package schedtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// backfillers adds, in one plan of three, a backfill or two; one is cancelled now and then.
func backfillers(p *Plan) {
	d := &dice{rand.New(rand.NewPCG(wire.Fold(p.Seed, "backfills"), 0xf111))}
	if d.IntN(3) > 0 {
		return
	}
	var names []string
	for _, j := range p.Jobs {
		if len(j.After) == 0 {
			names = append(names, j.Name)
		}
	}
	end := p.For - second
	if p.Heal > 0 {
		end = p.Heal
	}
	for i := range 1 + d.IntN(2) {
		job, at := pick(d, names), d.between(6*second, end-2*second).Truncate(2*time.Millisecond)+time.Millisecond
		b := ledger.Backfill{ID: fmt.Sprint("fill-", i), Job: job, Parallel: 1 + d.IntN(4), Author: "ops"}
		from, to := d.between(3*second, 9*second), d.between(0, 2*second)
		p.acts = append(p.acts, people(at, "backfill", job, func(c *cluster, l *ledger.Ledger, in *ops.Client) error {
			now := c.redisTime()
			return c.backfillAs(l, in, b, now.Add(-from), now.Add(-to))
		}))
		if d.IntN(4) == 0 {
			p.acts = append(p.acts, people(at+d.between(100*time.Millisecond, 2*second), "backfill-cancel", job, func(c *cluster, l *ledger.Ledger, _ *ops.Client) error {
				return c.cancelBackfill(l, job, "enough")
			}))
		}
	}
}

// people is an operator's action while Redis is up.
func people(at time.Duration, what, job string, do func(*cluster, *ledger.Ledger, *ops.Client) error) act {
	return act{at, func(c *cluster) {
		answer := "Redis is away"
		if c.redis.up {
			answer = "done"
			if err := c.beside(func(l *ledger.Ledger, in *ops.Client) error { return do(c, l, in) }); err != nil {
				answer = wordOf(err)
			}
		}
		c.seen[what+": "+firstWordsOf(answer)]++
		c.note("hand", "%s %s: %s", what, job, answer)
	}}
}

// backfillAs begins a backfill whose id does not depend on chance.
func (c *cluster) backfillAs(l *ledger.Ledger, in *ops.Client, b ledger.Backfill, from, to time.Time) error {
	ctx := context.Background()
	plan, err := in.Backfill(ctx, b.Job, ops.BackfillOptions{From: from, To: to, DryRun: true})
	if err != nil {
		return err
	}
	s, err := query.Job(ctx, l, b.Job)
	if err != nil {
		return err
	}
	b.From, b.To, b.Total = from.UnixMilli(), to.UnixMilli(), plan.Ticks
	if _, err = backfill.Begin(ctx, l, b, s.Digest); err == nil {
		d := c.done(b.Job)
		d.Backfills = append(d.Backfills, audit.Span{From: time.UnixMilli(b.From), Until: time.UnixMilli(b.To + 1)})
	}
	return err
}

// strayCheckpoints counts found checkpoints that no attempt of their tick and shard had saved.
var strayCheckpoints atomic.Int64

// saving has the function of one job in four save a checkpoint before it works, and compare the
// checkpoint of an earlier attempt with its own.
func saving(seed uint64, j jobs.Job) jobs.Job {
	if wire.Fold(seed, j.Name+" saves")%4 > 0 {
		return j
	}
	work := j.Func
	j.Func = func(ctx context.Context, run *jobs.Run) error {
		own := fmt.Appendf(nil, "%s %d %d", run.Job(), run.Tick().UnixMilli(), run.Shard())
		if found := run.Saved(); found != nil && !bytes.Equal(found, own) {
			strayCheckpoints.Add(1)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := run.Save(ctx, own); err != nil {
			return err
		}
		return work(ctx, run)
	}
	return j
}
