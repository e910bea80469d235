package schedtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/sharding"
)

const (
	millisecond = time.Millisecond
)

// aims are the plans. In all plans but the sharded ones, one job works on node a when nothing is
// wrong.
func aims() []aim {
	return []aim{
		{"calm", aimed("* * * * * *", second/10), punctual},
		{"a busy job is asked for by hand", aimed("* * * * * *", second, askedByHand), nil},
		// The owner is cut off from Redis while its function ignores its context and works on. The
		// owner comes back while another node runs the job.
		{"cut off", aimed("* * * * * *", 8*second, faults(
			Fault{Do: Cut, Node: "a", At: AfterStart, When: 7500 * millisecond, For: 6 * second})), nil},
		// The reply to one claim is lost. It costs a second, and no tick.
		{"lost reply", aimed("*/5 * * * * *", second/10, faults(
			Fault{Do: DropReply, Node: "a", At: AfterClaim, When: 9 * second})), allStarted},
		// The owner learns of its grant when its lease is over on its side and not yet in Redis.
		{"late answer", aimed("*/5 * * * * *", second/10, lateAnswer), allStarted},
		// The answer to the hand-back of the run is lost as well. A node carries one run at most,
		// so it does not take the run again that it has.
		{"handed back twice", aimed("*/5 * * * * *", second/10, lateAnswer, handedBackTwice), allStarted},
		{"old grant", aimed("@every 500ms", 10*second, oldGrant), nil},
		{"old renewal", aimed("@every 100ms", 10*second, oldRenewal), nil},
		// A claim is held up for long. Its node dies, comes back, and finds the tick untouched.
		{"stale claim", aimed("*/5 * * * * *", second/10, nodes(1), faults(
			Fault{Do: Delay, Node: "a", At: BeforeClaim, When: 9 * second, For: 3 * second},
			Fault{Do: Crash, Node: "a", When: 10200 * millisecond, For: 5 * second})), allStarted},
		{"slow copies", aimed("*/10 * * * * *", second/10, nodes(1), slowCopies), allStarted},
		// Redis' clock steps ahead of all leases while a function works.
		{"step forward", aimed("@every 700ms", 8*second, sweepEvery(50*millisecond), faults(
			Fault{Do: StepRedis, When: 10500 * millisecond, By: 4 * second})), nil},
		// It steps further than a node believes, and is set right again.
		{"step away", aimed("* * * * * *", second/10, heal(10*second), faults(
			Fault{Do: StepRedis, When: 5 * second, By: 90 * second})), byTrueTime},
		{"step back", aimed("* * * * * *", second/10, faults(
			Fault{Do: StepRedis, When: 5 * second, By: -4 * second})), nil},
		// Every machine's clock is set back by an hour.
		{"wrong walls", aimed("* * * * * *", second/10, onAll(Fault{Do: StepNode, When: 5 * second, By: -time.Hour})), nil},
		// Four requests to settle a run are lost; its renewals are not.
		{"slow settle", aimed("*/10 * * * * *", second/2, times(4,
			Fault{Do: DropRequest, Node: "a", At: BeforeSettle, When: 19 * second})), noneReaped},
		// The owner dies when its claim arrives.
		{"dead owner", aimed("* * * * * *", second/10, faults(
			Fault{Do: Crash, Node: "a", At: BeforeClaim, When: 7500 * millisecond})), failsOver},
		// Node a dies so, and ticks come due faster than nodes sweep: each begins when the one
		// before has ended.
		{"dead owner, backlog", aimed("@every 100ms", second/10, func(p *Plan) { p.Jobs[0].Func = patient(60 * millisecond) }, faults(
			Fault{Do: Crash, Node: "a", At: BeforeClaim, When: 7500 * millisecond})), failsOver},
		// Node a dies, or stands still, while it has a tick that is not due yet.
		{"dead before the start", aimed("* * * * * *", second/10, ahead(300*millisecond), faults(
			Fault{Do: Crash, Node: "a", At: AfterGrant, When: 7500 * millisecond})), failsOver},
		{"paused before the start", aimed("*/5 * * * * *", second/10, ahead(300*millisecond), faults(
			Fault{Do: Pause, Node: "a", At: AfterGrant, When: 7500 * millisecond, For: 2 * second})), allStarted},
		{"drained before the start", aimed("*/5 * * * * *", second/10, ahead(300*millisecond), faults(
			Fault{Do: Drain, Node: "a", At: AfterGrant, When: 7500 * millisecond, For: 10 * second})), allStarted},
		// The owner dies while its function works.
		{"dead worker", aimed("* * * * * *", second, faults(
			Fault{Do: Crash, Node: "a", At: AfterStart, When: 7500 * millisecond})), nil},
		{"drain", aimed("*/5 * * * * *", second/10, drained), startsNothing},
		// The owner drains while its function works until the end of its context or for half a
		// minute.
		{"long drain", aimed("* * * * * *", second, longWork, heal(24*second), faults(
			Fault{Do: Drain, Node: "a", At: AfterStart, When: 7500 * millisecond, For: 20 * second})), nil},
		// One node of three gets a newer definition.
		{"one is newer", aimed("* * * * * *", second/10, later("*/2 * * * * *"), faults(newer("a", 6*second))), replacedOnce},
		// Node a receives the stored definition late; meanwhile the other nodes run ticks.
		{"slow define", aimed("@every 100ms", second/10, later("@every 300ms"), faults(newer("a", 6*second),
			Fault{Do: Delay, Node: "a", At: AfterDefine, When: 6 * second, For: second / 2})), nil},
		// Node a dies as well: the other nodes' definition counts again.
		{"newer one dies", aimed("* * * * * *", second/10, later("*/2 * * * * *"), faults(newer("a", 6*second),
			Fault{Do: Crash, Node: "a", When: 12 * second})), nil},
		// All nodes stop at once, and start again some seconds later with a newer definition.
		{"all are newer", aimed("* * * * * *", second/10, later("1-59/2 * * * * *"), onAll(
			Fault{Do: Deploy, When: 5300 * millisecond, Version: 1, For: 3 * second})), nil},
		{"emptied", aimed("* * * * * *", second/10, faults(
			Fault{Do: EmptyRedis, When: 5 * second, For: second / 5})), noneRefused},
		// Restarted, then emptied: two servers other than the grantor of the tokens.
		{"restarted, emptied", aimed("* * * * * *", second/10, faults(
			Fault{Do: StopRedis, When: 4 * second, For: second / 5},
			Fault{Do: EmptyRedis, When: 8 * second, For: second / 5})), noneRefused},
		// Set back, then emptied: its clock has not come to the last tokens again.
		{"set back, emptied", aimed("* * * * * *", second/10, faults(
			Fault{Do: StepRedis, When: 5 * second, By: -4 * second},
			Fault{Do: EmptyRedis, When: 5200 * millisecond, For: second / 10})), noneRefused},
		// Redis is away for longer than late ticks are run in order.
		{"outage", aimed("* * * * * *", second/10, nodes(1), faults(
			Fault{Do: StopRedis, When: 5 * second, For: 13 * second})), inOrder},
		// A node carries one run at most, and half of the ticks find the job held.
		{"one slot", aimed("* * * * * *", second, func(p *Plan) {
			p.Config.MaxRunning, p.Jobs[0].Func = 1, patient(1500*millisecond)
		}), nil},
		// Redis refuses as many claims as there are slots.
		{"refused", aimed("* * * * * *", second/10, nodes(1), func(p *Plan) { p.Config.MaxRunning = 2 }, faults(
			Fault{Do: Refuse, At: BeforeClaim, When: 3 * second},
			Fault{Do: Refuse, At: BeforeClaim, When: 4 * second})), nil},
		// Nodes sweep rarely, so a shard that is not claimed at once waits.
		{"shards", inParts(sweepEvery(2 * second)), punctual},
		// A node is dead when a tick comes due.
		{"shards, a crash", inParts(faults(Fault{Do: Crash, Node: "a", When: 11900 * millisecond, For: 9 * second})), nil},
		{"shards, a deploy", inParts(otherParts), nil},
	}
}

// change modifies a plan.
type change func(p *Plan)

// aimed is a plan of three nodes and one job, whose owner is node a. Its work is short in the first
// 8 s, in which Redis loads the scripts (a fault before a request would hit the request that finds
// no script). Then the work takes as long as work.
func aimed(schedule string, work time.Duration, changes ...change) func(uint64) Plan {
	return func(seed uint64) Plan {
		p := Plan{Seed: seed, For: 44 * second, Jobs: []jobs.Job{{
			Name: ownedBy("a.1-1"), Schedule: schedule, TTL: 3 * second,
			Func: func(ctx context.Context, run *jobs.Run) error {
				if work < second || run.Tick().Second() < 8 {
					return patient(min(work, second/20))(ctx, run)
				}
				return stubborn(work)(ctx, run)
			},
		}}}
		for _, c := range changes {
			c(&p)
		}
		return p
	}
}

// inParts is a plan with a job of four shards, of which the first fails at once.
func inParts(changes ...change) func(uint64) Plan {
	return func(seed uint64) Plan {
		p := Plan{Seed: seed, For: 24 * second, Jobs: []jobs.Job{{
			Name: "parts", Schedule: "*/4 * * * * *", TTL: 3 * second, Shards: 4,
			Func: func(ctx context.Context, run *jobs.Run) error {
				if run.Shard() == 0 {
					return errors.New("no disk")
				}
				return patient(300*millisecond)(ctx, run)
			},
		}}}
		for _, c := range changes {
			c(&p)
		}
		return p
	}
}

// ownedBy is a job's name for which the node with this id goes first.
func ownedBy(id string) string {
	all := []sharding.Node{{ID: "a.1-1"}, {ID: "b.1-1"}, {ID: "c.1-1"}}
	for i := 0; ; i++ {
		name := fmt.Sprint("job-", i)
		if first, _ := sharding.Owner(name, all); first.ID == id {
			return name
		}
	}
}

func nodes(n int) change { return func(p *Plan) { p.Nodes = n } }

func heal(at time.Duration) change { return func(p *Plan) { p.Heal = at } }

func ahead(by time.Duration) change { return func(p *Plan) { p.Config.ClaimAhead = by } }

func sweepEvery(d time.Duration) change { return func(p *Plan) { p.Config.SweepEvery = d } }

func faults(all ...Fault) change {
	return func(p *Plan) { p.Faults = append(p.Faults, all...) }
}

func times(n int, f Fault) change {
	return func(p *Plan) {
		for range n {
			p.Faults = append(p.Faults, f)
		}
	}
}

func onAll(f Fault) change {
	return func(p *Plan) {
		for _, f.Node = range []string{"a", "b", "c"} {
			p.Faults = append(p.Faults, f)
		}
	}
}

// later is the schedule of the version that is deployed.
func later(schedule string) change {
	return func(p *Plan) {
		j := p.Jobs[0]
		j.Schedule = schedule
		p.Versions = [][]jobs.Job{{j}}
	}
}

func newer(node string, when time.Duration) Fault {
	return Fault{Do: Deploy, Node: node, When: when, Version: 1, For: second / 10}
}

func lateAnswer(p *Plan) {
	p.Faults = []Fault{{Do: Pause, Node: "a", At: AfterClaim, When: 9 * second, For: 2850 * millisecond}}
}

func handedBackTwice(p *Plan) {
	p.Jobs[0].Func, p.Config.MaxRunning = stubborn(1500*millisecond), 1
	p.Faults = append(p.Faults, Fault{Do: DropReply, Node: "a", At: AfterUnclaim, When: 9 * second})
}

// askedByHand requests runs again and again. Nodes sweep all the time, so some sweep just before a
// grant.
func askedByHand(p *Plan) {
	p.Jobs[0].Func, p.Config.SweepEvery = patient(1200*millisecond), 10*millisecond
	for at := 3 * second; at < 34*second; at += 2371 * millisecond {
		p.Triggers = append(p.Triggers, Trigger{When: at, Job: p.Jobs[0].Name})
	}
}

// oldGrant loses two replies to a claim, and every message of the node after the third: its lease
// in Redis ends three seconds after the first.
func oldGrant(p *Plan) {
	p.Config.SweepEvery = 50 * millisecond
	times(2, Fault{Do: DropReply, Node: "a", At: AfterClaim, When: 7800 * millisecond})(p)
	p.Faults = append(p.Faults, Fault{Do: CutRequests, Node: "a", At: AfterClaim, Nth: 3, When: 7800 * millisecond, For: 8 * second})
}

// oldRenewal delays a renewal's answer by nearly a second, and loses every later message of the
// node.
func oldRenewal(p *Plan) {
	p.Jobs[0].TTL, p.Config.SweepEvery, p.Config.Grace = 6*second, 20*millisecond, 10*millisecond
	p.Faults = []Fault{
		{Do: Delay, Node: "a", At: AfterRenew, When: 8 * second, For: 950 * millisecond},
		{Do: CutRequests, Node: "a", At: AfterRenew, When: 8 * second, For: 12 * second},
	}
}

// slowCopies delays two copies of a claim. The first is too old when it arrives. The second is not,
// and arrives after the node was answered that nothing was granted. The node's next claim is
// delayed too.
func slowCopies(p *Plan) {
	p.Jobs[0].TTL, p.Config.MaxSkew, p.Config.Grace = 12*second, 2*second, 10*second
	late := func(nth int, by time.Duration) Fault {
		return Fault{Do: Delay, Node: "a", At: BeforeClaim, Nth: nth, When: 19 * second, For: by}
	}
	p.Faults = append(p.Faults, late(1, 5*second), late(2, 1500*millisecond), late(4, second))
}

// drained drains the owner when its claim arrives. The owner receives its grant after it has handed
// over, or has given up the handover.
func drained(p *Plan) {
	p.Jobs[0].TTL, p.Config.MaxSkew = 8*second, second
	p.Faults = []Fault{
		{Do: Drain, Node: "a", At: BeforeClaim, When: 9 * second, For: 10 * second},
		{Do: CutReplies, Node: "a", At: AfterClaim, When: 9 * second, For: 2050 * millisecond},
	}
}

// longWork has the run of one tick wait for its context, or half a minute.
func longWork(p *Plan) {
	p.Jobs[0].Func = func(ctx context.Context, run *jobs.Run) error {
		if run.Tick().Second() == 8 {
			return patient(30*second)(ctx, run)
		}
		return nil
	}
}

// otherParts changes the number of shards while a tick is open.
func otherParts(p *Plan) {
	p.Config.MaxRunning, p.Jobs[0].Func = 1, patient(900*millisecond)
	j := p.Jobs[0]
	j.Shards = 2
	p.Versions = [][]jobs.Job{{j}}
	for i, name := range []string{"a", "b", "c"} {
		p.Faults = append(p.Faults, newer(name, 12200*millisecond+time.Duration(i)*50*millisecond))
	}
}
