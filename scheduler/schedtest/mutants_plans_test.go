//go:build mutants

package schedtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
	"github.com/escapement/escapement/sharding"
)

const second = time.Second

// start is when every bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// hunts are the plans by name. In all but those of shards, "random" and "healthy", one job does its work on node a when nothing is wrong.
var hunts = map[string]hunt{
	"random": {plan: planOf},
	// A job of four shards, of which the first fails at once; in the second of these a node is dead when a tick comes
	// due, in the third the number of shards changes while a tick is open.
	"shards":           {also: slowly, plan: inParts},
	"shards, a crash":  {plan: partsAndCrash},
	"shards, a deploy": {plan: partsAndDeploy},
	"healthy": {plan: func(seed uint64) schedtest.Plan {
		p := healthy(seed)
		p.For = 24 * second // the last runs by hand are asked for after 20 s
		return p
	}},
	// Nothing is wrong: ticks start at once.
	"calm": {also: slowly, plan: func(seed uint64) schedtest.Plan { return aimed(seed, "* * * * * *", second/10) }},
	// Nothing is wrong, and a busy job is asked for by hand again and again. Nodes sweep all the time, so
	// some look just before a grant.
	"by hand": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second)
		p.Jobs[0].Func, p.Config.SweepEvery = patient(1200*time.Millisecond), 10*time.Millisecond
		for at := 3 * second; at < 34*second; at += 2371 * time.Millisecond {
			p.Triggers = append(p.Triggers, schedtest.Trigger{When: at, Job: p.Jobs[0].Name})
		}
		return p
	}},
	// The owner is parted from Redis while its function works on, whatever it is told; it comes back while another
	// node does the job.
	"cut off": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", 8*second)
		p.Faults = []schedtest.Fault{{Do: schedtest.Cut, Node: "a", At: schedtest.AfterStart, When: 7500 * time.Millisecond, For: 6 * second}}
		return p
	}},
	// The reply to one claim is lost. It costs a second, and no tick.
	"lost reply": {also: every(unstarted, verify.Unstarted), plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "*/5 * * * * *", second/10)
		p.Faults = []schedtest.Fault{{Do: schedtest.DropReply, Node: "a", At: schedtest.AfterClaim, When: 9 * second}}
		return p
	}},
	// The owner learns of its grant when its lease is over on its side and not yet in Redis.
	"late answer": {also: every(unstarted, verify.Unstarted), plan: lateAnswer},
	// And the answer to its handing the run back is lost; a node carries one run at most, so that it does not take
	// the run again that it has.
	"handed back twice": {also: every(unstarted, verify.Unstarted), plan: func(seed uint64) schedtest.Plan {
		p := lateAnswer(seed)
		p.Jobs[0].Func, p.Config.MaxRunning = stubborn(1500*time.Millisecond), 1
		p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.DropReply, Node: "a", At: schedtest.AfterUnclaim, When: 9 * second})
		return p
	}},
	// Two replies to a claim are lost, and nothing that the node sends after the third arrives: its lease in Redis
	// ends three seconds after the first.
	"old grant": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "@every 500ms", 10*second)
		p.Config.SweepEvery = 50 * time.Millisecond
		p.Faults = []schedtest.Fault{
			{Do: schedtest.DropReply, Node: "a", At: schedtest.AfterClaim, When: 7800 * time.Millisecond},
			{Do: schedtest.DropReply, Node: "a", At: schedtest.AfterClaim, When: 7800 * time.Millisecond},
			{Do: schedtest.CutRequests, Node: "a", At: schedtest.AfterClaim, Nth: 3, When: 7800 * time.Millisecond, For: 8 * second},
		}
		return p
	}},
	// A renewal's answer takes nearly a second, and nothing that the node sends after it arrives.
	"old renewal": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "@every 100ms", 10*second)
		p.Jobs[0].TTL, p.Config.SweepEvery, p.Config.Grace = 6*second, 20*time.Millisecond, 10*time.Millisecond
		p.Faults = []schedtest.Fault{
			{Do: schedtest.Delay, Node: "a", At: schedtest.AfterRenew, When: 8 * second, For: 950 * time.Millisecond},
			{Do: schedtest.CutRequests, Node: "a", At: schedtest.AfterRenew, When: 8 * second, For: 12 * second},
		}
		return p
	}},
	// A claim is held up for long; its node dies, comes back, and finds the tick untouched.
	"stale claim": {also: every(unstarted, verify.Unstarted), plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "*/5 * * * * *", second/10)
		p.Nodes = 1
		p.Faults = []schedtest.Fault{
			{Do: schedtest.Delay, Node: "a", At: schedtest.BeforeClaim, When: 9 * second, For: 3 * second},
			{Do: schedtest.Crash, Node: "a", When: 10200 * time.Millisecond, For: 5 * second},
		}
		return p
	}},
	// Two copies of a claim are held up. The first is too old when it arrives; the second is not, and it arrives
	// after the node was told that it was granted nothing. So does what the node asks next.
	"slow copies": {also: every(unstarted, verify.Unstarted), plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "*/10 * * * * *", second/10)
		p.Nodes, p.Jobs[0].TTL, p.Config.MaxSkew, p.Config.Grace = 1, 12*second, 2*second, 10*second
		claim := schedtest.Fault{Do: schedtest.Delay, Node: "a", At: schedtest.BeforeClaim, When: 19 * second}
		for nth, late := range map[int]time.Duration{1: 5 * second, 2: 1500 * time.Millisecond, 4: second} {
			f := claim
			f.Nth, f.For = nth, late
			p.Faults = append(p.Faults, f)
		}
		return p
	}},
	// Redis' clock steps ahead of all leases while a function works.
	"step forward": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "@every 700ms", 8*second)
		p.Config.SweepEvery = 50 * time.Millisecond
		p.Faults = []schedtest.Fault{{Do: schedtest.StepRedis, When: 10500 * time.Millisecond, By: 4 * second}}
		return p
	}},
	// Redis' clock steps further than a node believes, and is set right again.
	"step away": {also: afterStep, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Heal = 10 * second
		p.Faults = []schedtest.Fault{{Do: schedtest.StepRedis, When: 5 * second, By: 90 * second}}
		return p
	}},
	// Redis' clock steps back by less.
	"step back": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Faults = []schedtest.Fault{{Do: schedtest.StepRedis, When: 5 * second, By: -4 * second}}
		return p
	}},
	// Every machine's clock is set back by an hour.
	"wrong walls": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		for _, n := range []string{"a", "b", "c"} {
			p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.StepNode, Node: n, When: 5 * second, By: -time.Hour})
		}
		return p
	}},
	// Four requests to settle a run are lost; its renewals are not.
	"slow settle": {also: told(reaped, "reap", "reaped"), plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "*/10 * * * * *", second/2)
		for range 4 {
			p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.DropRequest, Node: "a", At: schedtest.BeforeSettle, When: 19 * second})
		}
		return p
	}},
	// The owner dies when its claim arrives.
	"dead owner": {also: every(failover, verify.Delayed, verify.Missed, verify.Vanished), plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Faults = []schedtest.Fault{{Do: schedtest.Crash, Node: "a", At: schedtest.BeforeClaim, When: 7500 * time.Millisecond}}
		return p
	}},
	// The owner drains when its claim arrives.
	"drain": {also: afterDrain, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "*/5 * * * * *", second/10)
		p.Jobs[0].TTL, p.Config.MaxSkew = 8*second, second
		p.Faults = []schedtest.Fault{ // it hears of its grant when it has handed over, or given that up
			{Do: schedtest.Drain, Node: "a", At: schedtest.BeforeClaim, When: 9 * second, For: 10 * second},
			{Do: schedtest.CutReplies, Node: "a", At: schedtest.AfterClaim, When: 9 * second, For: 2050 * time.Millisecond},
		}
		return p
	}},
	// One node of three gets a newer definition.
	"one is newer": {also: afterReplacing, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Versions = [][]jobs.Job{aimed(seed, "*/2 * * * * *", second/10).Jobs}
		p.Faults = []schedtest.Fault{{Do: schedtest.Deploy, Node: "a", When: 6 * second, Version: 1, For: second / 10}}
		return p
	}},
	// It hears late what is stored, and meanwhile the others run ticks.
	"slow define": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "@every 100ms", second/10)
		p.Versions = [][]jobs.Job{aimed(seed, "@every 300ms", second/10).Jobs}
		p.Faults = []schedtest.Fault{
			{Do: schedtest.Deploy, Node: "a", When: 6 * second, Version: 1, For: second / 10},
			{Do: schedtest.Delay, Node: "a", At: schedtest.AfterDefine, When: 6 * second, For: second / 2},
		}
		return p
	}},
	// And it dies: the others' definition counts again.
	"newer one dies": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Versions = [][]jobs.Job{aimed(seed, "*/2 * * * * *", second/10).Jobs}
		p.Faults = []schedtest.Fault{
			{Do: schedtest.Deploy, Node: "a", When: 6 * second, Version: 1, For: second / 10},
			{Do: schedtest.Crash, Node: "a", When: 12 * second},
		}
		return p
	}},
	// The owner drains while its function works, and that waits for its context or half a minute.
	"long drain": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second)
		p.Jobs[0].Func = func(ctx context.Context, run *jobs.Run) error {
			if run.Tick().Second() == 8 {
				return patient(30*second)(ctx, run)
			}
			return nil
		}
		p.Heal = 24 * second
		p.Faults = []schedtest.Fault{{Do: schedtest.Drain, Node: "a", At: schedtest.AfterStart, When: 7500 * time.Millisecond, For: 20 * second}}
		return p
	}},
	// All nodes stop at once, and start again some seconds later with a newer definition.
	"all are newer": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Versions = [][]jobs.Job{aimed(seed, "1-59/2 * * * * *", second/10).Jobs}
		for _, n := range []string{"a", "b", "c"} {
			p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.Deploy, Node: n, When: 5300 * time.Millisecond, Version: 1, For: 3 * second})
		}
		return p
	}},
	"emptied": {also: stale, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Faults = []schedtest.Fault{{Do: schedtest.EmptyRedis, When: 5 * second, For: second / 5}}
		return p
	}},
	// Restarted, then emptied: two other servers than the one that gave the tokens.
	"restarted, emptied": {also: stale, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Faults = []schedtest.Fault{
			{Do: schedtest.StopRedis, When: 4 * second, For: second / 5},
			{Do: schedtest.EmptyRedis, When: 8 * second, For: second / 5},
		}
		return p
	}},
	// Set back, then emptied: its clock has not come to the last tokens again.
	"set back, emptied": {also: stale, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Faults = []schedtest.Fault{
			{Do: schedtest.StepRedis, When: 5 * second, By: -4 * second},
			{Do: schedtest.EmptyRedis, When: 5200 * time.Millisecond, For: second / 10},
		}
		return p
	}},
	// Redis is away for longer than late ticks are run in order.
	"outage": {also: outOfOrder, plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Nodes = 1
		p.Faults = []schedtest.Fault{{Do: schedtest.StopRedis, When: 5 * second, For: 13 * second}}
		return p
	}},
	// A node carries one run at most, and half of the ticks find the job held.
	"one slot": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second)
		p.Config.MaxRunning, p.Jobs[0].Func = 1, patient(1500*time.Millisecond)
		return p
	}},
	// Redis refuses as many claims as there are slots.
	"refused": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second/10)
		p.Nodes, p.Config.MaxRunning = 1, 2
		for i := range 2 {
			p.Faults = append(p.Faults, schedtest.Fault{Do: schedtest.Refuse, At: schedtest.BeforeClaim, When: time.Duration(3+i) * second})
		}
		return p
	}},
	// The owner dies while its function works.
	"dead worker": {plan: func(seed uint64) schedtest.Plan {
		p := aimed(seed, "* * * * * *", second)
		p.Faults = []schedtest.Fault{{Do: schedtest.Crash, Node: "a", At: schedtest.AfterStart, When: 7500 * time.Millisecond}}
		return p
	}},
}

func lateAnswer(seed uint64) schedtest.Plan {
	p := aimed(seed, "*/5 * * * * *", second/10)
	p.Faults = []schedtest.Fault{{Do: schedtest.Pause, Node: "a", At: schedtest.AfterClaim, When: 9 * second, For: 2850 * time.Millisecond}}
	return p
}

// aimed is a plan of three nodes and one job, whose owner is node a. Its work is short in the first 8 s, in which Redis
// comes to know the scripts (a fault before a request would hit the one that it does not know); then it takes so long.
func aimed(seed uint64, schedule string, work time.Duration) schedtest.Plan {
	return schedtest.Plan{Seed: seed, For: 44 * second, Config: scheduler.Config{}, Jobs: []jobs.Job{{
		Name: ownedBy("a.1-1"), Schedule: schedule, TTL: 3 * second,
		Func: func(ctx context.Context, run *jobs.Run) error {
			if work < second || run.Tick().Second() < 8 {
				return patient(min(work, second/20))(ctx, run)
			}
			return stubborn(work)(ctx, run)
		},
	}}}
}

// ownedBy is a job's name for which the node with this id goes first.
func ownedBy(id string) string {
	nodes := []sharding.Node{{ID: "a.1-1"}, {ID: "b.1-1"}, {ID: "c.1-1"}}
	for i := 0; ; i++ {
		name := fmt.Sprint("job-", i)
		if first, _ := sharding.Owner(name, nodes); first.ID == id {
			return name
		}
	}
}
