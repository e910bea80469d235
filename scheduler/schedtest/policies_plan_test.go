package schedtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

const (
	sec = time.Second
	// healAt is when the faults of every other plan end.
	healAt = 20 * sec
)

// policiesPlan is the plan of a seed: a few jobs with policies that the seed chooses, faults, and operators who
// do this and that. One seed in five loses acknowledged writes, one steps Redis' clock, in one everybody is
// away for longer than late ticks run in order; one in three is a deploy that changes policies.
func policiesPlan(seed uint64) (Plan, *tale) {
	d := &dice{rand.New(rand.NewPCG(seed, 0x9011c))}
	t := &tale{seed: seed, again: make(map[string]bool), rewound: make(map[string]int), did: make(map[string]int)}
	p := Plan{Seed: seed, Nodes: 1 + d.IntN(3), For: 28 * sec, unjudged: true}
	until := p.For
	if seed%2 == 0 {
		p.Heal, p.For, until = healAt, healAt+19*sec, healAt
	}
	p.Jobs = t.jobs(d)
	for _, f := range RandomFaults(seed, d.IntN(4), p.Nodes, 2500*time.Millisecond, until) {
		p.Faults = append(p.Faults, tamed(f, seed))
	}
	if seed%5 == 2 {
		p.Faults = append(p.Faults, away(d, p.names())...)
	}
	for range d.IntN(4) {
		p.Faults = append(p.Faults, aimed(d, until))
	}
	if d.IntN(3) == 0 {
		p.Versions = [][]jobs.Job{t.changed(d, p.Jobs)}
		for i, name := range p.names() {
			at := d.between(3*sec, 6*sec) + time.Duration(i)*700*time.Millisecond
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
	t.plan = p
	t.operators(d, &p)
	p.watch, p.last, p.final = t.see, t.look, t.close
	t.plan = p
	return p, t
}

// tamed is a fault as a seed may have it: most of them keep what Redis has acknowledged, and its clock.
func tamed(f Fault, seed uint64) Fault {
	switch {
	case (f.Do == EmptyRedis || f.Do == RollBackRedis) && seed%5 != 0:
		f.Do, f.Writes, f.For = StopRedis, 0, max(f.For, 100*time.Millisecond)
	case f.Do == StepRedis && seed%5 != 1:
		f.Do, f.By, f.For = StopRedis, 0, f.By.Abs()%(3*sec)+100*time.Millisecond
	}
	return f
}

// away has all nodes, or Redis, away for longer than late ticks run in order.
func away(d *dice, names []string) []Fault {
	at, long := d.between(3*sec, 5*sec), d.between(11*sec, 15*sec)
	if d.IntN(2) == 0 {
		return []Fault{{Do: StopRedis, When: at, For: long}}
	}
	var all []Fault
	for i, name := range names {
		all = append(all, Fault{Do: Crash, Node: name, When: at + time.Duration(i)*time.Millisecond, For: long})
	}
	return all
}

// aimed is a fault where word is brought from one job to another, where a run is handed back, or ends.
func aimed(d *dice, until time.Duration) Fault {
	f := pick(d, []Fault{
		{Do: DropRequest, At: BeforeRelay}, {Do: DropReply, At: AfterRelay}, {Do: Reset, At: AfterRelay},
		{Do: Crash, At: AfterRelay, For: 2 * sec}, {Do: Crash, At: BeforeRelay, For: 2 * sec}, {Do: Delay, At: BeforeRelay, For: 3 * sec},
		{Do: Pause, At: AfterSettle, For: 4 * sec}, {Do: StopRedis, At: AfterRelay, For: sec},
		{Do: CutReplies, At: AfterClaim, For: 3100 * time.Millisecond}, {Do: Drain, At: AfterClaim, For: sec}, {Do: Pause, At: AfterClaim, For: 3 * sec},
		{Do: Cut, At: AfterStart, For: 6 * sec}, {Do: Crash, At: AfterStart, For: 2 * sec}, {Do: Crash, At: AfterReap, For: sec},
		{Do: DropReply, At: AfterReap}, {Do: DropReply, At: AfterSettle}, {Do: Delay, At: AfterSettle, For: 2 * sec}, {Do: DropReply, At: AfterUnclaim},
	})
	f.When, f.Nth = d.between(2*sec, until-4*sec), 1+d.IntN(4)
	return f
}

var policySchedules = []string{"* * * * * *", "*/2 * * * * *", "@every 700ms", "@every 3s", "1-59/3 * * * * *", "H/4 * * * * *"}

// jobs are two or three with a schedule, and one or two that follow one of those, or each other.
func (t *tale) jobs(d *dice) []jobs.Job {
	var all []jobs.Job
	for i := range 2 + d.IntN(2) {
		j := jobs.Job{Name: fmt.Sprintf("job-%d", i), Schedule: pick(d, policySchedules), TTL: 3 * sec}
		all = append(all, t.parts(0, t.chosen(d, j)))
	}
	for i := range d.IntN(3) {
		j := jobs.Job{Name: fmt.Sprintf("after-%d", i), After: all[d.IntN(len(all))].Name, TTL: 3 * sec}
		all = append(all, t.parts(0, t.chosen(d, j)))
	}
	return all
}

// changed are the jobs of a deploy: other policies for half of them, and now and then another schedule.
func (t *tale) changed(d *dice, old []jobs.Job) []jobs.Job {
	all := slices.Clone(old)
	for i, j := range all {
		if d.IntN(2) == 0 {
			all[i] = t.chosen(d, jobs.Job{Name: j.Name, Schedule: j.Schedule, After: j.After, TTL: j.TTL})
		}
		if j.After == "" && d.IntN(5) == 0 {
			all[i].Schedule = "@every 1500ms"
		}
		all[i] = t.parts(1, all[i])
	}
	return all
}

// chosen gives a job policies and work.
func (t *tale) chosen(d *dice, j jobs.Job) jobs.Job {
	j.Overlap = pick(d, []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapAllow})
	if j.After == "" {
		j.CatchUp = pick(d, []jobs.CatchUp{jobs.CatchUpLatest, jobs.CatchUpAll, jobs.CatchUpNone})
	}
	if j.CatchUp == jobs.CatchUpAll {
		j.CatchUpMax = 1 + d.IntN(4)
	}
	if d.IntN(2) == 0 {
		j.OnCrash, j.RerunMax = jobs.OnCrashRerun, 1+d.IntN(3)
	}
	if d.IntN(4) == 0 {
		j.StartWithin = pick(d, []time.Duration{600 * time.Millisecond, 2 * sec, 12 * sec})
	}
	if d.IntN(4) == 0 {
		j.Timeout = d.between(200*time.Millisecond, 2500*time.Millisecond)
	}
	if d.IntN(3) == 0 {
		j.Retry = jobs.Retry{Max: 1 + d.IntN(3), Backoff: d.between(50*time.Millisecond, 300*time.Millisecond), MaxBackoff: 600 * time.Millisecond}
	}
	n := nature{job: j.Name, base: d.between(time.Millisecond, 400*time.Millisecond), stubborn: d.IntN(5) == 0, fails: []int{0, 3, 8}[d.IntN(3)]}
	n.slow = d.IntN(3)
	j.Func = t.work(n)
	return j
}

// nature is how a job's functions are: how long, whether they listen, and how often in 16 they fail.
type nature struct {
	job      string
	base     time.Duration
	slow     int // 0: never for long, 1: at times, 2: mostly
	stubborn bool
	fails    int
}
