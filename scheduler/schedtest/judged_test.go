package schedtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// failsOnce fails in the first try of each run.
func failsOnce(_ context.Context, run *jobs.Run) error {
	if run.Try() == 1 {
		return errors.New("not yet")
	}
	return nil
}

// judged are plans with every policy, in which nothing breaks a promise.
func judged() map[string]Plan {
	const second = time.Second
	slow := func(o jobs.Overlap) []jobs.Job { // at times
		return []jobs.Job{{Name: "job", Schedule: "@every 1s", TTL: 3 * second, Overlap: o, Placement: jobs.PlacementRace, Func: func(ctx context.Context, run *jobs.Run) error {
			if run.Tick().Second()%8 == 0 {
				return patient(2500*time.Millisecond)(ctx, run)
			}
			return patient(20*time.Millisecond)(ctx, run)
		}}}
	}
	quick := func(j jobs.Job) jobs.Job {
		j.Name, j.Schedule, j.TTL, j.Placement = "job", "* * * * * *", 3*second, jobs.PlacementRace
		if j.Func == nil {
			j.Func = patient(20 * time.Millisecond)
		}
		return j
	}
	faults := []Fault{ // those of the example in the README
		{Do: Crash, At: BeforeStart, Nth: 2, For: 2 * second},
		{Do: Pause, At: AfterStart, Nth: 3, For: 6 * second},
	}
	return map[string]Plan{
		"retry":   {Jobs: []jobs.Job{quick(jobs.Job{Retry: jobs.Retry{Max: 2, Backoff: 20 * time.Millisecond, MaxBackoff: 40 * time.Millisecond}, Func: failsOnce})}},
		"queue":   {Jobs: slow(jobs.OverlapQueue)},
		"replace": {Jobs: slow(jobs.OverlapReplace)},
		"allow":   {Jobs: slow(jobs.OverlapAllow)},
		"after":   {Jobs: []jobs.Job{quick(jobs.Job{}), {Name: "follower", After: "job", TTL: 3 * second, Func: patient(50 * time.Millisecond)}}},
		"labels": {
			Jobs:   []jobs.Job{quick(jobs.Job{Labels: map[string]string{"disk": "ssd"}}), {Name: "nobody", Schedule: "@every 1s", TTL: 3 * second, Labels: map[string]string{"disk": "tape"}, Func: patient(0)}},
			Labels: map[string]map[string]string{"b": {"disk": "ssd"}, "c": {"disk": "ssd"}},
		},
		"rerun after a crash": {Jobs: []jobs.Job{quick(jobs.Job{OnCrash: jobs.OnCrashRerun, RerunMax: 3})}, Faults: faults},
		"hashed schedule":     {Jobs: []jobs.Job{{Name: "job", Schedule: "H/2 * * * * *", TTL: 3 * second, Placement: jobs.PlacementRace, Func: patient(0)}}},
		"many shards":         {Jobs: []jobs.Job{quick(jobs.Job{Shards: 4})}, Faults: faults},
		"few slots":           {Jobs: []jobs.Job{quick(jobs.Job{Shards: 4})}, Config: scheduler.Config{MaxRunning: 1}},
	}
}

// Run judges jobs with every policy rightly: nothing is found where nothing is wrong.
func TestRunJudgesPolicies(t *testing.T) {
	for name, p := range judged() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.Seed, p.Heal, p.For = 1, 15*time.Second, 35*time.Second
			for i := range 4 { // all nodes ask for each tick; one that is late is refused, but for the rule that the cursor decides
				p.Faults = append(p.Faults, Fault{Do: Delay, At: BeforeClaim, Node: "c", When: time.Duration(7+i) * time.Second, For: 240 * time.Millisecond})
			}
			r := Run(t, p)
			if r.Runs < 8 {
				t.Errorf("the plan is empty: %d runs, %v", r.Runs, r.Verdicts)
			}
			if len(r.Idle) > 0 {
				t.Errorf("these never struck: %v", r.Idle)
			}
		})
	}
}
