package schedtest

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/sharding"
)

// firstWords is how long a cluster may take until the first process has registered the jobs.
const firstWords = 2 * time.Second

// activePeriod is a stretch of time in which a process of a version lived.
type activePeriod struct {
	version int
	audit.Span
	sure time.Time // until when a process with the definition, or one restarted with it, surely lived
}

// known returns the evidence about the jobs: when each definition may have been in force, when it
// surely was, and the operators' actions. A definition is surely in force when no process with
// another one lives or lived recently.
func (c *cluster) known() ([]audit.Job, error) {
	var lives []activePeriod
	for _, p := range c.processes {
		lives = append(lives, activePeriod{version: p.version, Span: audit.Span{From: p.born, Until: c.felt(p.died)}})
	}
	var all []audit.Job
	versions := c.plan.registries()
	for _, name := range c.plan.jobNames() {
		if slices.Contains(c.unjudged, name) {
			continue
		}
		known := *c.done(name)
		for v, same := range definitions(versions, name) {
			job, _ := versions[v].Get(name)
			def := job.Definition()
			schedule, err := def.ParsedSchedule()
			if err != nil {
				return nil, err
			}
			c.eligible(&known, def)
			for _, s := range spans(lives, time.Now(), c.settle, same) {
				known.Versions = append(known.Versions, c.inForce(schedule, def, s)...)
			}
		}
		all = append(all, known)
	}
	return all, nil
}

// felt returns until when the death of a process has an effect at least: while Redis is away no
// other process can take over.
func (c *cluster) felt(died time.Time) time.Time {
	for _, d := range c.disturbed {
		if len(d.Nodes) == 0 && d.Job == "" && d.From.Before(died.Add(c.settle)) && d.Until.After(died) {
			died = d.Until
		}
	}
	return died
}

// eligible notes which nodes may run a job, where not all may.
func (c *cluster) eligible(known *audit.Job, def jobs.Definition) {
	var some []string
	for _, name := range c.plan.names() {
		if sharding.Matches(def.Labels, c.plan.labels(name)) {
			some = append(some, name)
		}
	}
	if len(some) < len(c.plan.names()) {
		known.Eligible = append(append([]string{}, known.Eligible...), some...) // empty is not nil: no node can run it
	}
}

// holds returns for a version whether it has a definition, lacks the job, or has another
// definition.
type holds func(version int) held

type held uint8

const (
	lacks held = iota
	has
	differs
)

// definitions returns the different definitions of a job: by the first version that has each, the
// versions that have it.
func definitions(versions []*jobs.Registry, name string) map[int]holds {
	digests := make([]string, len(versions)) // none where a version lacks the job
	for v, reg := range versions {
		if def, ok := reg.Get(name); ok {
			digests[v] = def.Definition().Digest()
		}
	}
	all := make(map[int]holds)
	for v, digest := range digests {
		if digest == "" || slices.Contains(digests[:v], digest) {
			continue
		}
		all[v] = func(version int) held {
			switch digests[version] {
			case digest:
				return has
			case "":
				return lacks
			default:
				return differs
			}
		}
	}
	return all
}

// registries are the jobs of each version.
func (p Plan) registries() []*jobs.Registry {
	all := make([]*jobs.Registry, 1+len(p.Versions))
	for v := range all {
		all[v] = jobs.NewRegistry() // fills in the defaults
		for _, j := range p.jobs(v) {
			all[v].MustAdd(j)
		}
	}
	return all
}

// defined returns a version's job by name.
func (c *cluster) defined(name string, version int) (jobs.Job, bool) {
	for _, j := range c.plan.jobs(version) {
		if j.Name == name {
			return j.WithDefaults(jobs.Defaults{}), true
		}
	}
	return jobs.Job{}, false
}

// force is when a definition was in force, in stretches that hang together.
type force struct {
	possible audit.Span
	certain  []audit.Span
}

// spans cuts the time at every birth and death and computes when a definition was in force. in
// reports whether a version has the definition. It is possible while a process with the definition
// lives, and settle longer; certain while, for as long, no process with another version does. Where
// no process with the job lives, the last definition stays in force.
func spans(lives []activePeriod, read time.Time, settle time.Duration, in holds) []force {
	begin, everybody := lives[0].From, lives
	lives = succeeded(lives, read, in)
	cuts := []time.Time{begin, begin.Add(firstWords), read}
	for _, l := range everybody {
		cuts = append(cuts, l.From, l.Until, l.Until.Add(settle))
	}
	for _, l := range lives {
		cuts = append(cuts, l.Until, l.Until.Add(settle), l.sure.Add(settle))
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.Compact(cuts)
	var all []force
	for i := 0; i+1 < len(cuts) && cuts[i].Before(read); i++ {
		s := audit.Span{From: cuts[i], Until: cuts[i+1]}
		mine, sure, others := false, false, false
		for _, l := range lives {
			near := l.From.Before(s.Until) && l.Until.Add(settle).After(s.From)
			mine, others = mine || near && in(l.version) == has, others || near && in(l.version) == differs
			sure = sure || near && l.sure.Add(settle).After(s.From)
		}
		for _, l := range everybody { // a process without the job runs none of its ticks
			others = others || in(l.version) == lacks && l.From.Before(s.Until) && l.Until.Add(settle).After(s.From)
		}
		if !mine {
			continue
		}
		if n := len(all); n == 0 || !all[n-1].possible.Until.Equal(s.From) {
			all = append(all, force{possible: s})
		}
		f := &all[len(all)-1]
		f.possible.Until = s.Until
		if others || !sure || s.From.Before(begin.Add(firstWords)) {
			continue
		}
		if n := len(f.certain); n > 0 && f.certain[n-1].Until.Equal(s.From) {
			f.certain[n-1].Until = s.Until
			continue
		}
		f.certain = append(f.certain, s)
	}
	return all
}

// succeeded returns the lives of processes that have the job. The life of the last one is extended
// until the next begins.
func succeeded(lives []activePeriod, read time.Time, in holds) []activePeriod {
	all := slices.DeleteFunc(slices.Clone(lives), func(l activePeriod) bool { return in(l.version) == lacks })
	lived := slices.Clone(all)
	for i := range all {
		l := &all[i]
		l.sure = l.Until
		if slices.ContainsFunc(lived, func(o activePeriod) bool { return !o.From.After(l.sure) && o.Until.After(l.sure) }) {
			continue // it is not the last
		}
		l.Until = read
		for _, next := range lived {
			if next.From.After(l.sure) && next.From.Before(l.Until) {
				l.Until = next.From
			}
		}
		if slices.ContainsFunc(lived, func(o activePeriod) bool { return o.From.Equal(l.Until) && in(o.version) == in(l.version) }) {
			l.sure = l.Until
		}
	}
	return all
}

// inForce returns a force as the audit's versions, by Redis' clock. Where that clock was stepped
// and there is more than one definition, the definition in force at an instant is unknown.
func (c *cluster) inForce(schedule *jobs.Schedule, def jobs.Definition, f force) []audit.Version {
	if len(c.plan.Versions) > 0 && len(c.redis.steps) > 0 {
		return []audit.Version{{Schedule: schedule, Definition: def, Possible: audit.Span{From: c.began.Add(-24 * time.Hour)}}}
	}
	possible := c.byRedis(f.possible)
	if len(f.certain) == 0 {
		return []audit.Version{{Schedule: schedule, Definition: def, Possible: possible}}
	}
	var all []audit.Version
	for _, s := range f.certain {
		certain := audit.Span{From: s.From.Add(c.redis.stepped(s.From)), Until: c.byRedis(s).Until}
		all = append(all, audit.Version{Schedule: schedule, Definition: def, Possible: possible, Certain: certain})
	}
	return all
}

// waitedFor is for how long after Redis is back the other nodes surely wait for a paused one:
// failover_hold, less the time that the paused node needs then.
const waitedFor = 2 * time.Second

// survived records for each emptied Redis whether processes lived through it, which then report its
// losses. Where its clock was stepped, the ticks that came due are unknown.
func (c *cluster) survived(disturbed []audit.Disturbance) {
	if len(c.redis.steps) > 0 {
		return
	}
	for i := range disturbed {
		d := &disturbed[i]
		if d.Struck.IsZero() {
			continue
		}
		d.AllLived = true
		for _, p := range c.processes {
			if p.born.After(d.Until.Add(c.settle)) || !p.died.IsZero() && p.died.Before(d.Struck.Add(-c.settle)) {
				continue // it has no knowledge of the loss
			}
			lived := c.livedThrough(p, *d)
			d.SomeLived, d.AllLived = d.SomeLived || lived, d.AllLived && lived
		}
	}
}

// livedThrough reports whether a process had registered its jobs when Redis went, and was
// undisturbed, as was Redis, until it had reported to the new server.
func (c *cluster) livedThrough(p *process, d audit.Disturbance) bool {
	from, to := d.Struck.Add(-c.settle), d.Until.Add(c.settle)
	if p.born.After(d.Struck.Add(-firstWords)) || !p.died.IsZero() && p.died.Before(to) || time.Now().Before(to) {
		return false
	}
	return !slices.ContainsFunc(c.disturbed, func(o audit.Disturbance) bool {
		other := o.What != d.What || !o.Struck.Equal(d.Struck)
		hits := len(o.Nodes) == 0 || slices.Contains(o.Nodes, p.slot.name)
		if !o.Struck.IsZero() {
			return false // a process that lives through the one lives through the other
		}
		if o.What == string(Pause) && !o.Until.After(d.Until.Add(waitedFor)) {
			return false // the other nodes wait for it
		}
		return other && hits && o.Job == "" && !o.From.After(to) && !o.Until.Before(from)
	})
}
