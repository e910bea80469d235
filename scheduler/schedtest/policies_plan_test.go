package schedtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// healAt is when the faults of every other plan end.
const healAt = 20 * second

// policiesPlan is the plan of a seed: a few jobs with policies that the seed chooses, faults, and
// operators who act at random. One seed in five loses acknowledged writes, one steps Redis' clock,
// in one all nodes are away for longer than late ticks run in order; one in three is a deploy that
// changes policies.
func policiesPlan(seed uint64) Plan {
	d := &dice{rand.New(rand.NewPCG(seed, 0x9011c))}
	p := Plan{Seed: seed, Nodes: 1 + d.IntN(3), For: 28 * second}
	until := p.For
	if seed%2 == 0 {
		p.Heal, p.For, until = healAt, healAt+19*second, healAt
	}
	p.Jobs = policyJobs(d, seed)
	for _, f := range RandomFaults(seed, d.IntN(4), p.Nodes, 2500*time.Millisecond, until) {
		p.Faults = append(p.Faults, tamed(f, seed))
	}
	if seed%5 == 2 {
		p.Faults = append(p.Faults, away(d, p.names())...)
	}
	for range d.IntN(4) {
		p.Faults = append(p.Faults, aimedFault(d, until))
	}
	if d.IntN(3) == 0 {
		p.Versions = [][]jobs.Job{policiesChanged(d, seed, p.Jobs)}
		for i, name := range p.names() {
			at := d.between(3*second, 6*second) + time.Duration(i)*700*time.Millisecond
			p.Faults = append(p.Faults, Fault{Do: Deploy, Node: name, When: at, Version: 1, For: 100 * time.Millisecond})
		}
	}
	p.Config.HistoryKeep = 1000 // a sharded tick has many rows
	if d.IntN(5) == 0 {
		p.Config.HistoryKeep = 16
	}
	if d.IntN(5) == 0 {
		p.Config.MaxRunning = 2
	}
	operators(d, &p)
	backfillers(&p)
	return p
}

// tamed limits a fault for a seed: in most seeds Redis keeps acknowledged writes, and its clock
// does not step.
func tamed(f Fault, seed uint64) Fault {
	switch {
	case f.loses() && seed%5 != 0:
		f.Do, f.Writes, f.For = StopRedis, 0, max(f.For, 100*time.Millisecond)
	case f.Do == StepRedis && seed%5 != 1:
		f.Do, f.By, f.For = StopRedis, 0, f.By.Abs()%(3*second)+100*time.Millisecond
	}
	return f
}

// away has all nodes, or Redis, away for longer than late ticks run in order.
func away(d *dice, names []string) []Fault {
	at, long := d.between(3*second, 5*second), d.between(11*second, 15*second)
	if d.IntN(2) == 0 {
		return []Fault{{Do: StopRedis, When: at, For: long}}
	}
	var all []Fault
	for i, name := range names {
		all = append(all, Fault{Do: Crash, Node: name, When: at + time.Duration(i)*time.Millisecond, For: long})
	}
	return all
}

// aimedFault is a fault at the delivery of an event to a follower, at the hand-back of a run, or at
// its end.
func aimedFault(d *dice, until time.Duration) Fault {
	f := pick(d, []Fault{
		{Do: DropRequest, At: BeforeRelay}, {Do: DropReply, At: AfterRelay}, {Do: Reset, At: AfterRelay},
		{Do: Crash, At: AfterRelay, For: 2 * second}, {Do: Crash, At: BeforeRelay, For: 2 * second}, {Do: Delay, At: BeforeRelay, For: 3 * second},
		{Do: Pause, At: AfterSettle, For: 4 * second}, {Do: StopRedis, At: AfterRelay, For: second},
		{Do: CutReplies, At: AfterClaim, For: 3100 * time.Millisecond}, {Do: Drain, At: AfterClaim, For: second}, {Do: Pause, At: AfterClaim, For: 3 * second},
		{Do: Cut, At: AfterStart, For: 6 * second}, {Do: Crash, At: AfterStart, For: 2 * second}, {Do: Crash, At: AfterReap, For: second},
		{Do: DropReply, At: AfterReap}, {Do: DropReply, At: AfterSettle}, {Do: Delay, At: AfterSettle, For: 2 * second}, {Do: DropReply, At: AfterUnclaim},
	})
	f.When, f.Nth = d.between(2*second, until-4*second), 1+d.IntN(4)
	return f
}

var policySchedules = []string{"* * * * * *", "*/2 * * * * *", "@every 700ms", "@every 3s", "1-59/3 * * * * *", "H/4 * * * * *"}

// policyJobs are two or three jobs with a schedule, and one or two that follow them or each other.
func policyJobs(d *dice, seed uint64) []jobs.Job {
	var all []jobs.Job
	for i := range 2 + d.IntN(2) {
		j := jobs.Job{Name: fmt.Sprintf("job-%d", i), Schedule: pick(d, policySchedules), TTL: 3 * second}
		all = append(all, policyParts(seed, 0, chosen(d, seed, j)))
	}
	for i := range d.IntN(3) {
		j := jobs.Job{Name: fmt.Sprintf("after-%d", i), After: []string{all[d.IntN(len(all))].Name}, TTL: 3 * second}
		all = append(all, policyParts(seed, 0, chosen(d, seed, j)))
	}
	return joined(seed, all)
}

// policiesChanged are a deploy's jobs: other policies for half, now and then another schedule.
func policiesChanged(d *dice, seed uint64, old []jobs.Job) []jobs.Job {
	all := slices.Clone(old)
	for i, j := range all {
		if d.IntN(2) == 0 {
			all[i] = chosen(d, seed, jobs.Job{Name: j.Name, Schedule: j.Schedule, After: j.After, When: j.When, TTL: j.TTL})
		}
		if len(j.After) == 0 && d.IntN(5) == 0 && !begins(old, j.Name) {
			all[i].Schedule = "@every 1500ms"
		}
		all[i] = policyParts(seed, 1, all[i])
		if begins(old, j.Name) {
			all[i].Jitter = 0
		}
	}
	return all
}

// chosen gives a job policies and work.
func chosen(d *dice, seed uint64, j jobs.Job) jobs.Job {
	j.Overlap = pick(d, []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapAllow})
	if len(j.After) == 0 {
		j.CatchUp = pick(d, []jobs.CatchUp{jobs.CatchUpLatest, jobs.CatchUpAll, jobs.CatchUpNone})
	}
	if j.CatchUp == jobs.CatchUpAll {
		j.CatchUpMax = 1 + d.IntN(4)
	}
	if d.IntN(2) == 0 {
		j.OnCrash, j.RerunMax = jobs.OnCrashRerun, 1+d.IntN(3)
	}
	if d.IntN(4) == 0 {
		j.StartWithin = pick(d, []time.Duration{600 * time.Millisecond, 2 * second, 12 * second})
	}
	if d.IntN(4) == 0 {
		j.Timeout = d.between(200*time.Millisecond, 2500*time.Millisecond)
	}
	if d.IntN(3) == 0 {
		j.Retry = jobs.Retry{Max: 1 + d.IntN(3), Backoff: d.between(50*time.Millisecond, 300*time.Millisecond), MaxBackoff: 600 * time.Millisecond}
	}
	n := nature{job: j.Name, base: d.between(time.Millisecond, 400*time.Millisecond), stubborn: d.IntN(5) == 0, fails: []int{0, 3, 8}[d.IntN(3)]}
	n.slow = d.IntN(3)
	j.Func = func(ctx context.Context, run *jobs.Run) error {
		fmt.Fprint(run.Output(), run.ID())
		return n.work(ctx, seed, run)
	}
	return saving(seed, j)
}

// nature is how a job's functions behave: how long they take, whether they obey their context, and
// how often in 16 they fail.
type nature struct {
	job      string
	base     time.Duration
	slow     int // 0: never for long, 1: at times, 2: mostly
	stubborn bool
	fails    int
}

func (n nature) work(ctx context.Context, seed uint64, run *jobs.Run) error {
	what := fmt.Sprint(n.job, run.Tick().UnixMilli(), run.Attempt(), run.Try())
	if run.Shards() > 1 {
		what += fmt.Sprint(" shard ", run.Shard())
	}
	x := wire.Fold(seed, what)
	timer := time.NewTimer(n.length(x))
	defer timer.Stop()
	done := ctx.Done()
	if n.stubborn {
		done = nil
	}
	select {
	case <-timer.C:
	case <-done:
		return context.Cause(ctx)
	}
	if int(x>>20%16) >= n.fails {
		return nil
	}
	switch x >> 30 % 4 {
	case 0:
		return jobs.Permanent(errors.New("it never will"))
	case 1:
		panic("it broke")
	default:
		return errors.New("it did not work")
	}
}

func (n nature) length(x uint64) time.Duration {
	switch {
	case n.slow == 0 || n.slow == 1 && x>>8%3 > 0:
		return n.base
	case x>>12%2 == 0:
		return n.base * 4
	default:
		return n.base * 14
	}
}

// policyParts gives shards to about one job in four; a deploy changes their number now and then, or
// takes them away. Sharded jobs with a schedule tick every few seconds.
func policyParts(seed uint64, version int, j jobs.Job) jobs.Job {
	d := &dice{rand.New(rand.NewPCG(wire.Fold(seed, j.Name), 0x5aad))}
	sharded, n, other, slow := d.IntN(4) == 0, 2+d.IntN(4), 1+d.IntN(5), d.IntN(3) > 0
	if bound := [][2]int{{3, 12}, {12, 3}, {8, 0}, {0, 8}, {5, 5}}; len(j.After) == 0 && d.IntN(3) == 0 {
		j.MaxRuns = bound[d.IntN(len(bound))][version]
	}
	if j.Retry.Max > 0 && d.IntN(2) == 0 {
		j.Retry.On = jobs.RetryOtherNode
	}
	if j.Retry.Max > 0 && (j.Timeout == 0 || j.Timeout > 400*time.Millisecond) && d.IntN(3) == 0 {
		j.Retry.Timeout = 400 * time.Millisecond
	}
	if len(j.After) == 0 && d.IntN(4) == 0 {
		j.Jitter = time.Duration(1+d.IntN(900)) * time.Millisecond
	}
	if !sharded {
		return j
	}
	if slow && len(j.After) == 0 && version == 0 {
		j.Schedule = pick(d, []string{"@every 3s", "1-59/3 * * * * *"})
	}
	counts := []int{n, n}
	if d.IntN(2) == 0 {
		counts[d.IntN(2)] = other
	}
	j.Shards = counts[version]
	return j
}
