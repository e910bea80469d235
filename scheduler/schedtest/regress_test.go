package schedtest_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest"
)

// Plans that once failed, cut down to what it takes. Each says what was wrong.
var regressions = []struct {
	name string
	plan schedtest.Plan
}{
	{
		// A restart made tokens run up to 60 s further ahead of the clock; data lost after that put them back to
		// 60 s ahead. The sink refused every run for a minute.
		"tokens fell when Redis was restarted and then lost its data",
		schedtest.Plan{Faults: []schedtest.Fault{
			{Do: schedtest.StopRedis, When: 5 * time.Second, For: 500 * time.Millisecond},
			{Do: schedtest.EmptyRedis, When: 9 * time.Second, For: 500 * time.Millisecond},
		}},
	},
	{
		// Two failovers from the same last token gave the same next one, to two runs: the third server had not
		// heard of the second's grant.
		"one token twice when a failover lost the grant of the server before",
		schedtest.Plan{Faults: []schedtest.Fault{
			{Do: schedtest.StopRedis, When: 5 * time.Second, For: 500 * time.Millisecond},
			{Do: schedtest.RollBackRedis, When: 5600 * time.Millisecond, At: schedtest.AfterStart, For: 300 * time.Millisecond, Writes: 2},
		}},
	},
	{
		// A step of Redis' clock that a node does not believe did not break its idea of a steady clock. When the
		// clock came back, it reaped a lease that another node, which had believed, had taken meanwhile.
		"a living lease was reaped after a step that was not believed",
		schedtest.Plan{
			Nodes:   2,
			Offsets: map[string]time.Duration{"a": -2 * time.Minute},
			Jobs:    []jobs.Job{{Name: "long", Schedule: "0 0 * * * *", TTL: 3 * time.Second, Func: patient(9 * time.Second)}},
			Faults: []schedtest.Fault{
				{Do: schedtest.StepRedis, When: 6 * time.Second, By: -90 * time.Second},
				{Do: schedtest.StepRedis, When: 8 * time.Second, By: 90 * time.Second},
			},
			Triggers: []schedtest.Trigger{{When: 6500 * time.Millisecond, Job: "long"}, {When: 6700 * time.Millisecond, Job: "long"}},
		},
	},
	{
		// A run that was handed back holds its job until it is granted again. A run by hand that had been
		// pending for longer was asked for first, and held, each time: nobody came to the other one.
		"a handed-back run and a run by hand blocked each other for ever",
		schedtest.Plan{
			Nodes:    1,
			Jobs:     []jobs.Job{{Name: "quick", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)}},
			Faults:   []schedtest.Fault{{Do: schedtest.CutReplies, When: 4 * time.Second, At: schedtest.AfterClaim, For: 3100 * time.Millisecond}},
			Triggers: []schedtest.Trigger{{When: 6 * time.Second, Job: "quick"}},
		},
	},
}

func TestRegressions(t *testing.T) {
	for _, x := range regressions {
		t.Run(x.name, func(t *testing.T) {
			p := x.plan
			p.Seed, p.Heal, p.For = 1, 12*time.Second, 34*time.Second
			if p.Jobs == nil {
				p.Jobs = []jobs.Job{
					{Name: "quick", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: patient(20 * time.Millisecond)},
					{Name: "slow", Schedule: "*/2 * * * * *", TTL: 3 * time.Second, Func: patient(900 * time.Millisecond)},
				}
			}
			r := schedtest.Run(t, p)
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
