package schedtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// The story of a plan with one fault shows the fault's effect. Some effects follow with most seeds
// only, such as a run on the one node that was deployed; and a seed's meaning changes with every
// message that nodes send.
func TestFaults(t *testing.T) {
	const second = time.Second
	faults := map[string]struct {
		fault Fault
		shows string
	}{
		"drop request":     {Fault{Do: DropRequest, At: BeforeClaim}, "unknown outcome found not applied"},
		"drop reply":       {Fault{Do: DropReply, At: AfterClaim}, "unknown outcome found applied"},
		"drop report":      {Fault{Do: DropReply, At: AfterSettle}, "unknown outcome found applied"},
		"delay":            {Fault{Do: Delay, At: BeforeClaim, For: second}, "message came late"},
		"delay of a reply": {Fault{Do: Delay, At: AfterClaim, For: second}, "message came late"},
		"refuse":           {Fault{Do: Refuse, At: BeforeClaim}, "call refused"},
		"reset":            {Fault{Do: Reset, At: AfterClaim}, "unknown outcome found applied"},
		"crash":            {Fault{Do: Crash, At: AfterClaim, For: second}, "tick unstarted"},
		"crash at start":   {Fault{Do: Crash, At: AfterStart, For: second}, "tick skipped"},
		"pause":            {Fault{Do: Pause, At: AfterStart, For: 6 * second}, "lease expired while running"},
		"cut":              {Fault{Do: Cut, At: AfterStart, For: 6 * second}, "lease expired while running"},
		"cut requests":     {Fault{Do: CutRequests, At: AfterStart, For: 6 * second}, "lease expired while running"},
		"cut replies":      {Fault{Do: CutReplies, At: AfterClaim, For: 2 * second}, "unknown outcome found applied"},
		"drain":            {Fault{Do: Drain, At: AfterStart, For: second}, "process ended in peace"},
		"deploy":           {Fault{Do: Deploy, At: AfterStart, Version: 1}, "ran on version 1"},
		"step node":        {Fault{Do: StepNode, Node: "a", By: time.Hour}, "wrong wall clock read"},
		"step Redis":       {Fault{Do: StepRedis, At: AfterStart, By: 13 * second}, "tick missed"},
		"stop Redis":       {Fault{Do: StopRedis, At: AfterStart, For: 3 * second}, "restart between start and settle"},
		"empty Redis":      {Fault{Do: EmptyRedis, At: AfterStart, For: second}, "Redis lost something: empty Redis"},
		"roll Redis back":  {Fault{Do: RollBackRedis, At: AfterStart, For: second, Writes: 2}, "Redis lost something: roll Redis back"},
		"flip Redis":       {Fault{Do: FlipRedis, At: AfterStart, For: 300 * time.Millisecond, Writes: 2}, "Redis lost something: flip Redis"},
		"flush scripts":    {Fault{Do: FlushScripts, At: BeforeClaim}, "script asked for again after it was flushed"},
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := faults[name]
			work := []jobs.Job{{Name: "job", Schedule: "* * * * * *", TTL: 3 * second, Func: patient(700 * time.Millisecond)}}
			if c.fault.Do == Pause || c.fault.Do == Cut || c.fault.Do == CutRequests {
				work[0].Func = patient(5 * second)
			}
			c.fault.When = 4 * second
			var seen Counters
			for seed := uint64(1); seed <= 6 && seen[c.shows] == 0; seed++ {
				seen = Run(t, Plan{
					Seed: seed, Jobs: work, Versions: [][]jobs.Job{work}, Faults: []Fault{c.fault}, Heal: 16 * second, For: 32 * second,
				}).Seen
				if seen["fault: "+string(c.fault.Do)] != 1 {
					t.Errorf("seed %d: it did not happen once; seen:\n%s", seed, seen)
				}
			}
			if seen[c.shows] == 0 {
				t.Errorf("want %q; seen with the last seed:\n%s", c.shows, seen)
			}
		})
	}
}

// A plan that makes no sense is refused before anything starts, with all its faults.
func TestPlanIsChecked(t *testing.T) {
	err := Plan{
		Config: scheduler.Config{MaxSkew: 20 * time.Second}, Triggers: []Trigger{{Job: "nobody"}},
		Jobs:  []jobs.Job{{Name: "job", Schedule: "* * * * *", Func: patient(0)}},
		Nodes: 30, For: time.Millisecond, Heal: time.Second, Offsets: map[string]time.Duration{"moon": time.Hour},
		Faults: []Fault{
			{Do: Crash, Node: "zz"}, {Do: DropReply}, {Do: Crash}, {Do: Deploy, Node: "a", Version: 2}, {Do: RollBackRedis},
			{Do: DropReply, At: BeforeClaim}, {Do: Pause, Node: "a"}, {Do: StopRedis, When: time.Hour},
			{Do: "explode", Node: "a"}, {Do: Crash, At: "before lunch"},
		},
	}.withDefaults().validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"30 nodes", `no node "moon"`, "at least 1 s", "Heal", `trigger of "nobody"`, `no node "zz"`, "needs a point", "needs a node", "1 versions", "Writes is 0", "explode", "before lunch", "choose the point", "must last", "must strike before", "three times max_skew"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// A setting that cannot be judged is refused by name before anything starts.
func TestPlanThatCannotBeJudged(t *testing.T) {
	job := func(schedule string, after ...string) jobs.Job {
		return jobs.Job{Name: "odd", Schedule: schedule, After: after, Func: patient(0)}
	}
	next := redis.NewClient(&redis.Options{})
	defer next.Close()
	first := jobs.Job{Name: "first", Schedule: "* * * * *", Func: patient(0)}
	for want, p := range map[string]Plan{
		`version 1: job odd: it follows ["first"] (succeeded), and [] (succeeded) in version 0`: {Jobs: []jobs.Job{first, job("* * * * *")}, Versions: [][]jobs.Job{{first, job("", "first")}}},
		"Config.Next": {Jobs: []jobs.Job{first}, Config: scheduler.Config{Next: next}},
	} {
		if err := p.withDefaults().validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// A printed story has one line for sweeps in a row that found nothing.
func TestStoryFoldsSweeps(t *testing.T) {
	idle := "     0.060833  a      sweep  -> "
	story := []string{"     0.050000  a      starts as a.1 with version 0", idle, idle, idle, "     1.000000  a      claim a.1-1 -> granted", idle}
	text := Result{Story: story}.String()
	if !strings.Contains(text, story[0]+"\n"+idle+"nothing, and 2 more\n"+story[4]+"\n"+idle+"\n") {
		t.Errorf("got %s", text)
	}
}
