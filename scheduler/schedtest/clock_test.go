package schedtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

const (
	stepsAt   = 10300 * time.Millisecond
	takenBack = 19300 * time.Millisecond
)

// ofEveryPolicy are jobs that come due every two seconds. Most take longer, so that a run of each
// is in flight whenever Redis' clock steps.
func ofEveryPolicy() []jobs.Job {
	failing := func(err error) jobs.Func {
		return func(ctx context.Context, r *jobs.Run) error { return errors.Join(err, patient(second/2)(ctx, r)) }
	}
	job := func(name string, work time.Duration, change func(*jobs.Job)) jobs.Job {
		j := jobs.Job{Name: name, Schedule: "*/2 * * * * *", TTL: 3 * second, Func: patient(work)}
		change(&j)
		return j
	}
	return []jobs.Job{
		job("skip", 2600*millisecond, func(*jobs.Job) {}),
		job("queue", 2600*millisecond, func(j *jobs.Job) { j.Overlap = jobs.OverlapQueue }),
		job("replace", 2600*millisecond, func(j *jobs.Job) { j.Overlap = jobs.OverlapReplace }),
		job("allow", 2600*millisecond, func(j *jobs.Job) { j.Overlap = jobs.OverlapAllow }),
		job("quick", 20*millisecond, func(*jobs.Job) {}),
		job("shards", 700*millisecond, func(j *jobs.Job) { j.Shards = 2 }),
		job("shards-queue", 2600*millisecond, func(j *jobs.Job) { j.Shards, j.Overlap = 2, jobs.OverlapQueue }),
		job("elsewhere", 0, func(j *jobs.Job) {
			j.Func, j.Retry = failing(errors.New("no")), jobs.Retry{Max: 2, On: jobs.RetryOtherNode, Backoff: second / 2}
		}),
		job("all", 300*millisecond, func(j *jobs.Job) { j.CatchUp = jobs.CatchUpAll }),
		job("paused", 20*millisecond, func(*jobs.Job) {}),
		{Name: "after", After: []string{"quick"}, TTL: 3 * second, Func: patient(20 * millisecond)},
		{Name: "join", After: []string{"quick", "all"}, TTL: 3 * second, Func: patient(20 * millisecond)},
	}
}

// TestClockTakenBack: Redis' clock steps far, and is taken back while runs of every policy are in
// flight; some have ended meanwhile. Every job goes on with its next tick, and no row is lost.
func TestClockTakenBack(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 10 * 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				rows := make(map[string]bool)
				r := Play(t, Plan{
					// The judge counts all ticks that came due by Redis' clock: ten days have too
					// many.
					unjudged: by > 24*time.Hour, last: func(c *cluster) { c.readRuns(rows) },
					Config: scheduler.Config{HistoryKeepFor: 30 * time.Minute},
					Seed:   seed, Nodes: 3, Jobs: ofEveryPolicy(), Heal: takenBack + second, For: takenBack + 14*second,
					Faults: []Fault{{Do: StepRedis, When: stepsAt, By: by}, {Do: StepRedis, When: takenBack, By: -by}},
					acts: []act{
						people(8*second, "pause", "paused", func(c *cluster, _ *ledger.Ledger, in *ops.Client) error {
							return c.pause(in, "paused", ops.PauseOptions{Reason: "why"})
						}),
						people(stepsAt+4*second, "resume", "paused", func(c *cluster, _ *ledger.Ledger, in *ops.Client) error {
							return c.resume(in, "paused")
						}),
					},
				})
				wrong := goesOn(r, rows)
				for _, f := range r.Findings {
					wrong = append(wrong, fmt.Sprint(f))
				}
				if len(wrong) > 0 {
					t.Errorf("seed %d: %s\n%s", seed, strings.Join(wrong, "\n"), r)
				}
			}
		})
	}
}

// readRuns notes which runs have a row, or are in flight.
func (c *cluster) readRuns(rows map[string]bool) {
	err := c.beside(func(l *ledger.Ledger, _ *ops.Client) error {
		all, _, err := query.History(context.Background(), l, c.plan.jobNames())
		for _, of := range all {
			for _, row := range of {
				rows[row.Run] = true
			}
		}
		return err
	})
	if err != nil {
		c.blame(Harness, "", "read the history: %v", err)
	}
}

// goesOn expects each job to start within four seconds after the step was taken back, and every run
// that had ended by then to have a row.
func goesOn(r Result, rows map[string]bool) (wrong []string) {
	back := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(takenBack)
	for _, j := range ofEveryPolicy() {
		started := slices.ContainsFunc(r.Writes, func(w audit.Write) bool {
			return w.Job == j.Name && w.Phase == audit.Start && w.At.After(back) && w.At.Before(back.Add(4*second))
		})
		if !started {
			wrong = append(wrong, fmt.Sprintf("job %s did not start within 4 s after the clock was taken back", j.Name))
		}
	}
	for _, w := range r.Writes {
		if w.Phase == audit.End && w.At.Before(back) && !rows[w.Run] {
			wrong = append(wrong, "no row of "+w.String())
		}
	}
	return wrong
}
