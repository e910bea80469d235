package schedtest

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Plan is one simulation: a cluster, its jobs and the faults. The same plan gives the same history,
// byte for byte.
type Plan struct {
	// Seed decides how long each message takes.
	Seed uint64
	// Nodes is how many nodes there are, named a, b, c, ...; 1 to 26. Default 3.
	Nodes int
	// For is how long they work, in the bubble's time. Default 30 s.
	For time.Duration
	// Heal, when not 0, is when all faults end and their damage is mended: from then on every tick
	// must run in time, and when the nodes have stopped nothing may be left behind. At least twice
	// the longest ttl and 6 s before For. With 0, faults go on to the end, where all nodes stop at
	// once.
	Heal time.Duration
	// Jobs are the jobs of every node. Their functions are called as they are; that they start and
	// end is written to the sink around them.
	Jobs []jobs.Job
	// Versions are the jobs of later deploys; Deploy counts from 0, which is Jobs.
	Versions [][]jobs.Job
	// Labels are each node's labels, by name, beside the labels of Config.
	Labels map[string]map[string]string
	// Offsets are how far the nodes' wall clocks are from the true time at the start, by name.
	Offsets map[string]time.Duration
	// Triggers are requests for runs by hand.
	Triggers []Trigger
	// Faults are the faults, in any order.
	Faults []Fault
	// Config is the nodes' settings; Name, Logger, Revision and WaitForRedis are the simulation's.
	// By default the times in it are short, so that a minute shows as much as many otherwise.
	Config scheduler.Config

	// scripts are more scripts that faults can be aimed at, by SHA-1.
	scripts map[string]string
	// strict excuses nothing after lost writes: nodes live that can report the losses.
	strict bool
	// wordy adds every message to the story.
	wordy bool
	// handlers are the handlers that stored jobs may name, on every node.
	handlers map[string]jobs.Func
	// unjudged leaves the verdict to the caller, unjudgedJobs the verdict on some jobs.
	unjudged     bool
	unjudgedJobs []string
	// acts are operations from outside, each with the cluster's lock held; an operation takes no
	// time.
	acts []act
	// last is called, with the lock held, when the time is up and before anything is stopped.
	last func(*cluster)
	// watch is called, with the lock held, for every request that Redis has carried out, with the
	// words of its reply, before the node receives it.
	watch func(*cluster, *message, []string)
	// final is called, with the lock held, when everything has ended.
	final func(*cluster)
}

// act is an operation from outside, with direct access to Redis: of an operator, or of a program.
type act struct {
	when time.Duration // since the start
	do   func(*cluster)
}

func (p Plan) withDefaults() Plan {
	p.Nodes = cmp.Or(p.Nodes, 3)
	p.For = cmp.Or(p.For, 30*time.Second)
	// Two partitions where there are jobs for both: an empty one costs sweeps and tests nothing.
	p.Config.Partitions = cmp.Or(p.Config.Partitions, max(1, min(2, len(p.jobNames()))))
	p.Config.MaxSkew = cmp.Or(p.Config.MaxSkew, 300*time.Millisecond)
	p.Config.MaxStep = cmp.Or(p.Config.MaxStep, time.Minute)
	p.Config.Grace = cmp.Or(p.Config.Grace, 200*time.Millisecond)
	p.Config.SweepEvery = cmp.Or(p.Config.SweepEvery, 250*time.Millisecond)
	p.Config.DrainTimeout = cmp.Or(p.Config.DrainTimeout, 2*time.Second)
	return p
}

// settle is how long after a fault its effects may last: a dead node leaves the roster, Redis'
// clock must run steadily for a ttl, leases lapse and are reaped, rejected nodes register again.
func (p Plan) settle() time.Duration {
	longest := 3 * time.Second
	for v := range 1 + len(p.Versions) {
		for _, j := range p.jobs(v) {
			longest = max(longest, cmp.Or(j.TTL, 15*time.Second))
		}
	}
	return 2*longest + 3*time.Second
}

// within is promise P6 for a plan: how late a run may start, whether or not other nodes have
// faults. It is 2 s at the default grace of 500 ms, and 1.7 s at a plan's of 200 ms.
func (p Plan) within() time.Duration { return p.Config.Grace + 1500*time.Millisecond }

// names are the nodes' names.
func (p Plan) names() []string {
	names := make([]string, p.Nodes)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	return names
}

// jobs are the jobs of a version.
func (p Plan) jobs(version int) []jobs.Job {
	if version == 0 {
		return p.Jobs
	}
	return p.Versions[version-1]
}

// jobNames are the names of all jobs of all versions, in order of their first version.
func (p Plan) jobNames() []string {
	var names []string
	for v := range 1 + len(p.Versions) {
		for _, j := range p.jobs(v) {
			if !slices.Contains(names, j.Name) {
				names = append(names, j.Name)
			}
		}
	}
	return names
}

// beside are the jobs whose runs may go on side by side, in some version of them.
func (p Plan) beside() map[string]bool {
	all := make(map[string]bool)
	for v := range 1 + len(p.Versions) {
		for _, j := range p.jobs(v) {
			all[j.Name] = all[j.Name] || j.Overlap == jobs.OverlapAllow
		}
	}
	return all
}

// labels returns a node's labels.
func (p Plan) labels(node string) map[string]string {
	all := maps.Clone(p.Config.Labels)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, p.Labels[node])
	return all
}

// crowded reports whether nodes may be short of slots, so that a late start is no fault.
func (p Plan) crowded() bool {
	n := 0
	for v := range 1 + len(p.Versions) {
		here := 0
		for _, j := range p.jobs(v) {
			here += max(1, j.Shards)
			if j.Overlap == jobs.OverlapAllow {
				here += spareSlots
			}
		}
		n = max(n, here)
	}
	return p.Config.MaxRunning > 0 && p.Config.MaxRunning < n
}

// spareSlots is for how many more runs there should be slots where a job allows them.
const spareSlots = 16

// settings checks that a node can be made of the plan's settings and jobs.
func (p Plan) settings(reg *jobs.Registry) error {
	cfg := p.Config
	cfg.Name, cfg.Logger = "a", slog.New(slog.DiscardHandler)
	client := redis.NewClient(redistest.ClientOptions(nowhere))
	defer client.Close()
	_, err := scheduler.New(client, reg, cfg)
	return err
}

func (p Plan) validate() error {
	var errs []error
	if p.Nodes < 1 || p.Nodes > 26 {
		errs = append(errs, fmt.Errorf("plan: %d nodes: must lie between 1 and 26", p.Nodes))
		p.Nodes = 1
	}
	if p.For < time.Second {
		errs = append(errs, fmt.Errorf("plan: For is %s: at least 1 s", p.For))
	}
	if least := p.settle() + 3*time.Second; p.Heal < 0 || p.Heal != 0 && p.For-p.Heal < least {
		errs = append(errs, fmt.Errorf("plan: Heal is %s and For %s: with the ttls of these jobs (15 s where a job has none) Heal must come at least %s before For; let it go on longer, or give the jobs a shorter ttl", p.Heal, p.For, least))
	}
	if len(p.Jobs) == 0 {
		errs = append(errs, errors.New("plan: no jobs"))
	}
	for v := range 1 + len(p.Versions) {
		reg := jobs.NewRegistry()
		for _, j := range p.jobs(v) {
			if err := reg.Add(j); err != nil {
				errs = append(errs, fmt.Errorf("plan: version %d: %w", v, err))
			}
		}
		if err := p.settings(reg); err != nil {
			errs = append(errs, fmt.Errorf("plan: version %d: %w", v, err))
		}
		errs = append(errs, p.judgeable(v)...)
	}
	for _, tr := range p.Triggers {
		if !slices.Contains(p.jobNames(), tr.Job) || tr.When < 0 || tr.When > p.For {
			errs = append(errs, fmt.Errorf("plan: trigger of %q at %s: there must be such a job, and the time must lie in the plan", tr.Job, tr.When))
		}
	}
	for name := range p.Labels {
		if !slices.Contains(p.names(), name) {
			errs = append(errs, fmt.Errorf("plan: Labels: there is no node %q; the nodes are %s", name, strings.Join(p.names(), ", ")))
		}
	}
	for name := range p.Offsets {
		if !slices.Contains(p.names(), name) {
			errs = append(errs, fmt.Errorf("plan: Offsets: there is no node %q; the nodes are %s", name, strings.Join(p.names(), ", ")))
		}
	}
	for _, f := range p.Faults {
		if err := f.validate(p.names(), 1+len(p.Versions)); err != nil {
			errs = append(errs, fmt.Errorf("plan: %w", err))
		}
		if end := cmp.Or(p.Heal, p.For); f.When < 0 || f.When >= end {
			errs = append(errs, fmt.Errorf("plan: fault %q: it must strike before %s, when faults end", f, end))
		}
	}
	return errors.Join(errs...)
}

// judgeable refuses, by name, the settings of a plan that cannot be judged.
func (p Plan) judgeable(version int) (errs []error) {
	refuse := func(what string, args ...any) {
		errs = append(errs, fmt.Errorf("plan: version %d: %s", version, fmt.Sprintf(what, args...)))
	}
	if p.Config.Next != nil {
		refuse("Config.Next: a move to another Redis cannot be judged in a plan")
	}
	for _, j := range p.jobs(version) {
		for _, line := range refusedBy(j) {
			refuse("job %s: %s", j.Name, line)
		}
		def := j.Definition()
		if _, err := def.ParsedSchedule(); err != nil {
			refuse("job %s: its schedule cannot be judged: %v", j.Name, err)
		}
		for _, before := range p.Jobs {
			if before.Name == j.Name && !sameUpstreams(before, j) && !slices.Contains(p.unjudgedJobs, j.Name) {
				refuse("job %s: it follows %q (%v), and %q (%v) in version 0; a job that changes what it follows cannot be judged", j.Name, j.After, j.When, before.After, before.When)
			}
		}
	}
	return errs
}

// sameUpstreams reports whether two jobs follow the same jobs, and after the same ends.
func sameUpstreams(a, b jobs.Job) bool { return slices.Equal(a.After, b.After) && a.When == b.When }

// refusedBy returns a line for each setting that cannot be judged: see spec.Setting.Judged.
func refusedBy(j jobs.Job) (lines []string) {
	for _, s := range spec.All() {
		if s.Judged == "" && jobs.Settings.Given(&j, s) {
			lines = append(lines, fmt.Sprintf("%s: %s", s.Field, s.Unjudged))
		}
	}
	return lines
}
