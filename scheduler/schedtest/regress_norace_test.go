//go:build !race

package schedtest_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// A run that a sweep reported as pending when it was granted already is asked for once more, and the same node is
// given the same grant. When the answer came after the run had ended, the function was called once more.
func TestPendingRunIsBegunOnce(t *testing.T) {
	again := 0
	for seed := range uint64(30) {
		r := schedtest.Run(t, schedtest.Plan{
			Seed: seed, Nodes: 1, Heal: 6 * time.Second, For: 20 * time.Second,
			Jobs:     []jobs.Job{{Name: "quick", Schedule: "0 0 * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)}},
			Config:   scheduler.Config{SweepEvery: 10 * time.Millisecond},
			Triggers: []schedtest.Trigger{{When: 4 * time.Second, Job: "quick"}},
			Faults:   []schedtest.Fault{{Do: schedtest.Delay, At: schedtest.AfterClaim, Nth: 2, When: 4 * time.Second, For: 300 * time.Millisecond}},
		})
		again += r.Seen["fault: delay"]
		if n := r.Seen["run by manual"]; n != 1 {
			t.Errorf("seed %d: the run was begun %d times", seed, n)
		}
		if again == 2 {
			break // that is enough, and rare
		}
	}
	if again == 0 {
		t.Error("it was never asked for once more")
	}
}

// A run by hand of a busy job mostly starts as soon as the run before it has ended: it was asked for only every 2 s, and mostly
// in vain. At times a tick is still quicker.
func TestRunByHandOfABusyJob(t *testing.T) {
	const seeds = 15
	late := 0
	for seed := range uint64(seeds) {
		r := schedtest.Run(t, schedtest.Plan{
			Seed: seed, Heal: 2 * time.Second, For: 20 * time.Second,
			Jobs:     []jobs.Job{{Name: "busy", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(1900 * time.Millisecond)}},
			Triggers: []schedtest.Trigger{{When: 5100 * time.Millisecond, Job: "busy"}},
		})
		for _, w := range r.Writes {
			if w.Trigger == "manual" && w.Phase == verify.Start && w.At.Sub(w.Tick) > 4*time.Second {
				late++
			}
		}
	}
	if late > seeds/2 {
		t.Errorf("in %d of %d plays the run by hand waited for more than 4 s for a job that takes 1.9 s", late, seeds)
	}
}
