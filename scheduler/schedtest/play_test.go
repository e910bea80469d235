package schedtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest"
)

// Each fault does what it says: the story of a plan with that fault alone shows what must follow.
func TestFaults(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		fault schedtest.Fault
		shows string
	}{
		"drop request":     {schedtest.Fault{Do: schedtest.DropRequest, At: schedtest.BeforeClaim}, "unknown outcome found not applied"},
		"drop reply":       {schedtest.Fault{Do: schedtest.DropReply, At: schedtest.AfterClaim}, "unknown outcome found applied"},
		"drop report":      {schedtest.Fault{Do: schedtest.DropReply, At: schedtest.AfterSettle}, "unknown outcome found applied"},
		"delay":            {schedtest.Fault{Do: schedtest.Delay, At: schedtest.BeforeClaim, For: second}, "message came late"},
		"delay of a reply": {schedtest.Fault{Do: schedtest.Delay, At: schedtest.AfterClaim, For: second}, "message came late"},
		"refuse":           {schedtest.Fault{Do: schedtest.Refuse, At: schedtest.BeforeClaim}, "call refused"},
		"reset":            {schedtest.Fault{Do: schedtest.Reset, At: schedtest.AfterClaim}, "unknown outcome found applied"},
		"crash":            {schedtest.Fault{Do: schedtest.Crash, At: schedtest.AfterClaim, For: second}, "tick unstarted"},
		"crash at start":   {schedtest.Fault{Do: schedtest.Crash, At: schedtest.AfterStart, For: second}, "tick skipped"},
		"pause":            {schedtest.Fault{Do: schedtest.Pause, At: schedtest.AfterStart, For: 6 * second}, "lease expired while running"},
		"cut":              {schedtest.Fault{Do: schedtest.Cut, At: schedtest.AfterStart, For: 6 * second}, "lease expired while running"},
		"cut requests":     {schedtest.Fault{Do: schedtest.CutRequests, At: schedtest.AfterStart, For: 6 * second}, "lease expired while running"},
		"cut replies":      {schedtest.Fault{Do: schedtest.CutReplies, At: schedtest.AfterClaim, For: 2 * second}, "unknown outcome found applied"},
		"drain":            {schedtest.Fault{Do: schedtest.Drain, At: schedtest.AfterStart, For: second}, "process ended in peace"},
		"deploy":           {schedtest.Fault{Do: schedtest.Deploy, At: schedtest.AfterStart, Version: 1}, "ran on version 1"},
		"step node":        {schedtest.Fault{Do: schedtest.StepNode, Node: "a", By: time.Hour}, "wrong wall clock read"},
		"step Redis":       {schedtest.Fault{Do: schedtest.StepRedis, At: schedtest.AfterStart, By: 13 * second}, "tick missed"},
		"stop Redis":       {schedtest.Fault{Do: schedtest.StopRedis, At: schedtest.AfterStart, For: 3 * second}, "restart between start and settle"},
		"empty Redis":      {schedtest.Fault{Do: schedtest.EmptyRedis, At: schedtest.AfterStart, For: second}, "Redis lost something: empty Redis"},
		"roll Redis back":  {schedtest.Fault{Do: schedtest.RollBackRedis, At: schedtest.AfterStart, For: second, Writes: 2}, "Redis lost something: roll Redis back"},
		"flush scripts":    {schedtest.Fault{Do: schedtest.FlushScripts, At: schedtest.BeforeClaim}, "script asked for again after it was flushed"},
	} {
		t.Run(name, func(t *testing.T) {
			work := []jobs.Job{{Name: "job", Schedule: "* * * * * *", TTL: 3 * second, Func: patient(700 * time.Millisecond)}}
			if c.fault.Do == schedtest.Pause || c.fault.Do == schedtest.Cut || c.fault.Do == schedtest.CutRequests {
				work[0].Func = patient(5 * second)
			}
			c.fault.When = 4 * second
			r := schedtest.Run(t, schedtest.Plan{
				Seed: 3, Jobs: work, Versions: [][]jobs.Job{work}, Faults: []schedtest.Fault{c.fault}, Heal: 16 * second, For: 32 * second,
			})
			if r.Seen["fault: "+string(c.fault.Do)] != 1 || r.Seen[c.shows] == 0 {
				t.Errorf("want %q; seen:\n%s", c.shows, r.Seen)
			}
		})
	}
}

// A plan that makes no sense is refused before anything starts, with all that is wrong.
func TestPlanIsChecked(t *testing.T) {
	err := schedtest.Plan{
		Config: scheduler.Config{MaxSkew: 20 * time.Second}, Triggers: []schedtest.Trigger{{Job: "nobody"}},
		Jobs:  []jobs.Job{{Name: "job", Schedule: "* * * * *", Func: patient(0)}},
		Nodes: 30, For: time.Millisecond, Heal: time.Second, Offsets: map[string]time.Duration{"moon": time.Hour},
		Faults: []schedtest.Fault{
			{Do: schedtest.Crash, Node: "zz"}, {Do: schedtest.DropReply}, {Do: schedtest.Crash}, {Do: schedtest.Deploy, Node: "a", Version: 2}, {Do: schedtest.RollBackRedis},
			{Do: schedtest.DropReply, At: schedtest.BeforeClaim}, {Do: schedtest.Pause, Node: "a"}, {Do: schedtest.StopRedis, When: time.Hour},
			{Do: "explode", Node: "a"}, {Do: schedtest.Crash, At: "before lunch"},
		},
	}.Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"30 nodes", `no node "moon"`, "at least 1 s", "Heal", `trigger of "nobody"`, `no node "zz"`, "needs a point", "needs a node", "1 versions", "Writes is 0", "explode", "before lunch", "choose the point", "must last", "must strike before", "three times max_skew"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}
