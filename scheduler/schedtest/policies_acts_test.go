package schedtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

// operator's acts, by how often they are done.
var policyActs = []string{"pause", "pause until", "resume", "trigger", "trigger", "trigger at", "unique", "unique", "cancel", "cancel", "cancel", "rerun", "rerun", "rewind", "rewind"}

// operators adds operators' actions: at odd milliseconds, so that no run by hand has the tick of a
// scheduled one.
func operators(d *dice, p *Plan) {
	end := p.For - second
	if p.Heal > 0 {
		end = p.Heal
	}
	names := p.jobNames()
	for i := range d.IntN(12) {
		when := d.between(1500*time.Millisecond, end).Truncate(2*time.Millisecond) + time.Millisecond
		job, what, x := pick(d, names), pick(d, policyActs), d.Uint64()
		p.acts = append(p.acts, act{when, func(c *cluster) {
			answer := "Redis is away"
			if c.redis.up {
				err := c.beside(func(l *ledger.Ledger, in *ops.Client) (err error) {
					answer, err = operator{i, what, job, x}.act(c, l, in)
					return err
				})
				if err != nil {
					answer = wordOf(err)
				}
			}
			c.seen[what+": "+firstWordsOf(answer)]++
			c.note("hand", "%s %s: %s", what, job, answer)
		}})
	}
	if p.Heal > 0 { // the operator who paused a job resumes it
		for _, job := range names {
			p.acts = append(p.acts, act{p.Heal + 31*time.Millisecond, func(c *cluster) {
				_ = c.beside(func(_ *ledger.Ledger, in *ops.Client) error { return c.resume(in, job) })
			}})
		}
	}
}

// operator is an operator's act; x decides its random details.
type operator struct {
	no        int
	what, job string
	x         uint64
}

func (o operator) act(c *cluster, l *ledger.Ledger, in *ops.Client) (answer string, err error) {
	now := c.redisTime().UnixMilli()
	answer = "done"
	switch o.what {
	case "pause":
		err = c.pause(in, o.job, ops.PauseOptions{Author: "ops", Reason: "why not"})
	case "pause until":
		err = c.pause(in, o.job, ops.PauseOptions{Author: "ops", Reason: "why not", Until: time.UnixMilli(now + 500 + int64(o.x%6000))})
	case "resume":
		err = c.resume(in, o.job)
	case "cancel":
		return o.cancel(c, l)
	case "rerun":
		return o.rerun(c, l)
	case "rewind":
		err = c.rewind(in, o.job, time.UnixMilli(now-int64(o.x%5000)))
	default:
		return o.trigger(c, l, now)
	}
	return answer, err
}

func (o operator) trigger(c *cluster, l *ledger.Ledger, now int64) (string, error) {
	want := operate.TriggerRequest{Run: fmt.Sprint("hand-", o.no), Payload: []byte(fmt.Sprint(o.no))}
	switch o.what {
	case "trigger at":
		want.At = now/2*2 + 1 + int64(o.x%3000)*2
	case "unique":
		want.Unique = "key"
	}
	id, err := c.trigger(l, o.job, want)
	if err == nil && id != want.Run {
		return "the same run", nil
	}
	return "done", err
}

// cancel cancels some run that is going or waits.
func (o operator) cancel(c *cluster, l *ledger.Ledger) (string, error) {
	open, err := query.InFlight(context.Background(), l, c.plan.jobNames()...)
	if err != nil || len(open) == 0 {
		return "no run", err
	}
	run := open[o.x%uint64(len(open))]
	word, err := c.cancel(l, run.Job, run.ID, "enough")
	return string(word), err
}

// rerun requests one more attempt of some run that has ended.
func (o operator) rerun(c *cluster, l *ledger.Ledger) (string, error) {
	rows, _, err := query.History(context.Background(), l, []string{o.job})
	if err != nil {
		return "", err
	}
	runs := slices.DeleteFunc(rows[o.job], func(r ledger.Row) bool { return r.Ranged })
	if len(runs) == 0 {
		return "no run", nil
	}
	_, err = c.rerun(l, o.job, runs[o.x%uint64(len(runs))].Run)
	return "done", err
}
