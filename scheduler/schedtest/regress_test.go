package schedtest

import (
	"cmp"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// Plans that once failed, reduced to the necessary. Each comment describes the fault.
var regressions = []struct {
	name string
	plan Plan
}{
	{
		// A restart made tokens run up to 60 s further ahead of the clock; data lost after that put
		// them back to 60 s ahead. The sink refused every run for a minute. The node restarts as
		// well, or it would restore the tokens.
		"tokens fell when Redis was restarted and then lost its data",
		Plan{Nodes: 1, Faults: []Fault{
			{Do: StopRedis, When: 5 * time.Second, For: 500 * time.Millisecond},
			{Do: Crash, Node: "a", When: 8800 * time.Millisecond, For: 900 * time.Millisecond},
			{Do: EmptyRedis, When: 9 * time.Second, For: 500 * time.Millisecond},
		}},
	},
	{
		// The node that had opened a tick reported to the empty Redis the cursor behind it, though
		// no shard was granted yet.
		"an opened tick was lost when Redis was emptied before its shards were granted",
		Plan{
			Nodes:  1,
			Jobs:   []jobs.Job{{Name: "parts", Schedule: "*/3 * * * * *", TTL: 3 * time.Second, CatchUp: jobs.CatchUpAll, Shards: 3, Func: patient(20 * time.Millisecond)}},
			Faults: []Fault{{Do: EmptyRedis, At: AfterClaim, When: 8 * time.Second, For: time.Second}},
		},
	},
	{
		// Two failovers from the same last token gave the same next one, to two runs: the third
		// server lacked the second's grant. No node reports it either, for the only node restarts
		// as well.
		"one token twice when a failover lost the grant of the server before",
		Plan{Nodes: 1, Faults: []Fault{
			{Do: StopRedis, When: 5 * time.Second, For: 500 * time.Millisecond},
			{Do: Crash, Node: "a", When: 5600 * time.Millisecond, At: AfterStart, For: 900 * time.Millisecond},
			{Do: RollBackRedis, When: 5600 * time.Millisecond, At: AfterStart, For: 300 * time.Millisecond, Writes: 2},
		}},
	},
	{
		// A step of Redis' clock that a node did not believe left its estimate of a steady clock
		// intact. When the clock came back, the node reaped a lease that another node, which had
		// believed the step, had taken meanwhile. Node b sees the step in one sample only: a clock
		// that was not believed for 3 s is not steady anyway.
		"a living lease was reaped after a step that was not believed",
		Plan{
			Nodes:   2,
			Offsets: map[string]time.Duration{"a": -2 * time.Minute},
			Jobs:    []jobs.Job{{Name: "long", Schedule: "0 0 * * * *", TTL: 9 * time.Second, Func: patient(9 * time.Second)}},
			Faults: []Fault{
				{Do: StepRedis, When: 11400 * time.Millisecond, By: -90 * time.Second},
				{Do: StepRedis, When: 12500 * time.Millisecond, By: 90 * time.Second},
			},
			Triggers: []Trigger{{When: 11450 * time.Millisecond, Job: "long"}, {When: 11500 * time.Millisecond, Job: "long"}},
			Heal:     20 * time.Second, For: 50 * time.Second,
		},
	},
	{
		// A run that was handed back holds its job until it is granted again. A run by hand that
		// had been pending for longer was claimed first each time, and refused: no node claimed the
		// other run.
		"a handed-back run and a run by hand blocked each other for ever",
		Plan{
			Nodes:    1,
			Jobs:     []jobs.Job{{Name: "quick", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)}},
			Faults:   []Fault{{Do: CutReplies, When: 4 * time.Second, At: AfterClaim, For: 3100 * time.Millisecond}},
			Triggers: []Trigger{{When: 6 * time.Second, Job: "quick"}},
		},
	},
	{
		// A node whose own clock is wrong believed that Redis' clock had stepped back, and did not
		// believe that it came back. The node kept a run that it had been granted ahead of its
		// tick, and the other nodes skipped the job's ticks for it.
		"a run granted ahead was kept by a node that does not believe Redis' clock",
		Plan{
			Nodes:   2,
			Offsets: map[string]time.Duration{"a": -2 * time.Minute},
			Jobs: []jobs.Job{
				{Name: "a", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
				{Name: "b", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
				{Name: "c", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
				{Name: "d", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
			},
			Faults: []Fault{
				{Do: StepRedis, When: 3 * time.Second, At: AfterClaim, By: -90 * time.Second},
				{Do: StepRedis, When: 12 * time.Second, By: 90 * time.Second},
			},
			Heal: 14 * time.Second, For: 32 * time.Second,
		},
	},
}

func TestRegressions(t *testing.T) {
	for _, x := range regressions {
		t.Run(x.name, func(t *testing.T) {
			p := x.plan
			p.Seed, p.Heal, p.For = 1, cmp.Or(p.Heal, 12*time.Second), cmp.Or(p.For, 34*time.Second)
			if p.Jobs == nil {
				p.Jobs = []jobs.Job{
					{Name: "quick", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
					{Name: "slow", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(900 * time.Millisecond)},
				}
			}
			r := Run(t, p)
			for _, f := range p.Faults {
				if r.Seen["fault: "+string(f.Do)] == 0 {
					t.Errorf("the plan is empty: %s did not happen", f)
				}
			}
			if n := r.Seen["run by manual"]; n != len(p.Triggers) {
				t.Errorf("%d runs by hand, %d were asked for", n, len(p.Triggers))
			}
		})
	}
}

// A run by hand of a busy job mostly starts as soon as the run before it has ended. Before, nodes
// claimed it only every 2 s, and mostly in vain. At times a tick is still quicker.
func TestRunByHandOfABusyJob(t *testing.T) {
	const seeds = 6
	late := 0
	for seed := range uint64(seeds) {
		r := Run(t, Plan{
			Seed: seed, Heal: 2 * time.Second, For: 20 * time.Second,
			Jobs:     []jobs.Job{{Name: "busy", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(1900 * time.Millisecond)}},
			Triggers: []Trigger{{When: 5100 * time.Millisecond, Job: "busy"}},
		})
		for _, w := range r.Writes {
			if w.Trigger == "manual" && w.Phase == audit.Start && w.At.Sub(w.Tick) > 4*time.Second {
				late++
			}
		}
	}
	if late > seeds/2 {
		t.Errorf("in %d of %d plays the run by hand waited for more than 4 s for a job that takes 1.9 s", late, seeds)
	}
}
