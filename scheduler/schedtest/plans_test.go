package schedtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/escapement/escapement/jobs"
)

const second = time.Second

// planOf is the plan of a seed. Of eight seeds, two have one fault, two a pair, four more; every
// other seed heals; one in four is a rolling deploy, and a third of the deploys are taken back.
func planOf(seed uint64) Plan {
	d := rand.New(rand.NewPCG(seed, 0x9a17))
	p := Plan{Seed: seed, Nodes: 2 + d.IntN(3), For: 24 * second, Jobs: workload(seed, 0)}
	p.Config.HistoryKeep = 1000 // a sharded tick has many rows
	faults, until := []int{1, 2, 1, 2, 3, 4, 5, 6}[seed%8], p.For
	if seed%2 == 0 {
		p.Heal = 14 * second
		p.For, until = p.Heal+18*second, p.Heal
	}
	p.Faults = RandomFaults(seed, faults, p.Nodes, 2500*time.Millisecond, until)
	if d.IntN(4) == 0 {
		p.Versions = [][]jobs.Job{workload(seed, 1)}
		p.Faults = append(p.Faults, deploys(d, p.Nodes)...)
	}
	if d.IntN(2) == 0 {
		p.Offsets = map[string]time.Duration{"a": time.Duration(d.IntN(600_000)-300_000) * time.Millisecond}
	}
	for range d.IntN(4) {
		job := p.Jobs[d.IntN(len(p.Jobs))].Name
		p.Triggers = append(p.Triggers, Trigger{When: time.Duration(1000+d.IntN(20_000)) * time.Millisecond, Job: job})
	}
	return p
}

// deploys brings version 1 to one node after another, each when it comes to some point of a tick's
// life; or to the first only, and takes it back.
func deploys(d *rand.Rand, nodes int) []Fault {
	points := []Point{BeforeClaim, AfterClaim, BeforeStart, AfterStart, BeforeSettle, AfterSettle, ""}
	at := time.Duration(3000+d.IntN(4000)) * time.Millisecond
	var all []Fault
	for i := range nodes {
		f := Fault{Do: Deploy, Node: string(rune('a' + i)), When: at, At: points[d.IntN(len(points))], Version: 1, For: 100 * time.Millisecond}
		all = append(all, f)
		at += time.Duration(d.IntN(1500)) * time.Millisecond
	}
	if d.IntN(3) == 0 {
		back := all[0]
		back.When, back.At, back.Version = at+2*second, "", 0
		return []Fault{all[0], back}
	}
	return all
}

// parts gives shards to about one job in four, and a deploy changes their number now and then.
// Sharded jobs tick every few seconds.
func parts(seed uint64, version, i int, j jobs.Job) jobs.Job {
	d := rand.New(rand.NewPCG(seed, 0x5aad+uint64(i)))
	sharded, n, other := d.IntN(4) == 0, 2+d.IntN(4), 1+d.IntN(5)
	if !sharded {
		return j
	}
	j.Shards = n
	if d.IntN(3) > 0 {
		j.Schedule = []string{"@every 3s", "1-59/3 * * * * *"}[d.IntN(2)]
	}
	if from, to := other, n; d.IntN(2) == 0 { // to and from one shard as well
		j.Shards = []int{from, to}[version]
	}
	return j
}

// workload returns a few jobs: quick and slow ones, some that last longer than their lease, and
// some that ignore their context. Version 1 has another schedule for one job and another ttl for
// one.
func workload(seed uint64, version int) []jobs.Job {
	d := rand.New(rand.NewPCG(seed, 0x30b5))
	schedules := []string{"* * * * * *", "*/2 * * * * *", "@every 700ms", "@every 3s", "1-59/3 * * * * *"}
	var all []jobs.Job
	for i := range 3 + d.IntN(2) {
		work := time.Duration(1+d.IntN(400)) * time.Millisecond
		switch d.IntN(4) {
		case 0:
			work *= 4
		case 1:
			work *= 14
		}
		j := jobs.Job{Name: fmt.Sprintf("job-%d", i), Schedule: schedules[d.IntN(len(schedules))], TTL: 3 * second, Func: patient(work)}
		if d.IntN(3) == 0 {
			j.Func = stubborn(work)
		}
		if version == 1 && i == 0 {
			j.Schedule = "@every 1500ms"
		}
		if version == 1 && i == 1 {
			j.TTL = 4 * second
		}
		all = append(all, parts(seed, version, i, j))
	}
	return all
}

// patient works for d, or until its context ends.
func patient(d time.Duration) jobs.Func {
	return func(ctx context.Context, _ *jobs.Run) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		}
	}
}

// stubborn works for d, whether or not its context has ended.
func stubborn(d time.Duration) jobs.Func {
	return func(context.Context, *jobs.Run) error {
		time.Sleep(d)
		return nil
	}
}
