package schedtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// paused is a pause that an operator began. It ends at until, or when another act ends it.
type paused struct {
	job         string
	from, until int64 // by Redis' clock, ms; until is never for one without an end
}

// never is an instant behind all others, ms.
const never = int64(1) << 60

// asking is a run that somebody asked for by hand, and was promised.
type asking struct {
	job, run string
	at       int64 // by Redis' clock, ms
}

// killed is a wish to end a run.
type killed struct {
	at       time.Time
	job, run string
	word     ledger.Word
}

// operator's acts, by how often they are done.
var policyActs = []string{"pause", "pause until", "resume", "trigger", "trigger", "trigger at", "unique", "unique", "cancel", "cancel", "cancel", "rerun", "rerun", "rewind", "rewind"}

// operators adds what operators do: at odd milliseconds, so that no run by hand has the tick of a scheduled one.
func (t *tale) operators(d *dice, p *Plan) {
	end := p.For - sec
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
				err := c.beside(func(l *ledger.Ledger, in *scheduler.Inspector) (err error) {
					answer, err = t.operate(c, l, in, operator{i, what, job, x})
					return err
				})
				if err != nil {
					answer = wordOf(err)
				}
			}
			t.did[what+": "+firstWordsOf(answer)]++
			c.note("hand", "%s %s: %s", what, job, answer)
		}})
	}
	if p.Heal > 0 { // whoever paused a job goes on with it
		for _, job := range names {
			p.acts = append(p.acts, act{p.Heal + 31*time.Millisecond, func(c *cluster) {
				now := c.redisTime().UnixMilli()
				if err := c.beside(func(l *ledger.Ledger, _ *scheduler.Inspector) error { return l.Resume(context.Background(), job) }); err == nil {
					t.resumed(job, now)
				}
			}})
		}
	}
}

// operator is one who does something; x decides what is left open.
type operator struct {
	no        int
	what, job string
	x         uint64
}

func (t *tale) operate(c *cluster, l *ledger.Ledger, in *scheduler.Inspector, o operator) (string, error) {
	ctx, now := context.Background(), c.redisTime().UnixMilli()
	switch o.what {
	case "pause", "pause until":
		w := paused{job: o.job, from: now, until: never}
		opts := scheduler.PauseOptions{Author: "ops", Reason: "why not"}
		if o.what == "pause until" {
			w.until = now + 500 + int64(o.x%6000)
			opts.Until = time.UnixMilli(w.until)
		}
		if err := in.Pause(ctx, o.job, opts); err != nil {
			return "", err
		}
		t.resumed(o.job, now) // the new end counts
		t.pauses = append(t.pauses, w)
		return "done", nil
	case "resume":
		err := in.Resume(ctx, o.job)
		if err == nil {
			t.resumed(o.job, now)
		}
		return "done", err
	case "cancel":
		return t.cancel(ctx, l, o)
	case "rerun":
		return t.rerun(ctx, l, o)
	case "rewind":
		_, err := in.Rewind(ctx, o.job, time.UnixMilli(now-int64(o.x%5000)))
		if err == nil {
			t.rewound[o.job]++
		}
		return "done", err
	default:
		return t.trigger(ctx, l, o, now)
	}
}

// resumed ends the pauses of a job.
func (t *tale) resumed(job string, now int64) {
	for i, w := range t.pauses {
		if w.job == job && w.until > now {
			t.pauses[i].until = now
		}
	}
}

func (t *tale) trigger(ctx context.Context, l *ledger.Ledger, o operator, now int64) (string, error) {
	want := ledger.Trigger{Run: fmt.Sprint("hand-", o.no), Payload: []byte(fmt.Sprint(o.no))}
	switch o.what {
	case "trigger at":
		want.At = now/2*2 + 1 + int64(o.x%3000)*2
	case "unique":
		want.Unique = "key"
	}
	id, err := l.Trigger(ctx, o.job, want)
	if err != nil {
		return "", err
	}
	for _, a := range t.asked {
		if a.run == id && a.job == o.job {
			return "the same run", nil
		}
	}
	t.asked = append(t.asked, asking{o.job, id, max(now, want.At)})
	return "done", nil
}

// cancel wants some run ended that is going or waits.
func (t *tale) cancel(ctx context.Context, l *ledger.Ledger, o operator) (string, error) {
	open, err := l.Open(ctx, t.plan.jobNames()...)
	if err != nil || len(open) == 0 {
		return "no run", err
	}
	run := open[o.x%uint64(len(open))]
	word, err := l.Cancel(ctx, run.Job, run.Run, "ops", "enough")
	if err == nil {
		t.kills = append(t.kills, killed{time.Now(), run.Job, run.Run, word})
	}
	return string(word), err
}

// rerun wants one more attempt of some run that has ended.
func (t *tale) rerun(ctx context.Context, l *ledger.Ledger, o operator) (string, error) {
	rows, _, err := l.History(ctx, []string{o.job})
	if err != nil {
		return "", err
	}
	runs := slices.DeleteFunc(rows[o.job], func(r ledger.Row) bool { return r.Ranged })
	if len(runs) == 0 {
		return "no run", nil
	}
	open, err := l.Open(ctx, o.job)
	if err != nil {
		return "", err
	}
	run := runs[o.x%uint64(len(runs))]
	fresh, err := l.Rerun(ctx, o.job, run.Run)
	if err != nil {
		return "", err
	}
	there := slices.ContainsFunc(open, func(x ledger.Lease) bool { return x.Run == fresh }) ||
		slices.ContainsFunc(runs, func(r ledger.Row) bool { return r.Run == fresh })
	if !there {
		t.wanted(fresh, true)
	}
	return "done", nil
}
