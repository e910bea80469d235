package schedtest

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// firstWords is how long a cluster may take until the first process has registered the jobs.
const firstWords = 2 * time.Second

// reign is a stretch of time in which a process of a version lived.
type reign struct {
	version int
	verify.Span
}

// known says what the verifier is told of the jobs: for each definition when it may have been in
// force, and when surely, because processes with no other lived, or had for a while.
func (c *cluster) known() ([]verify.Job, error) {
	var lives []reign
	for _, p := range c.processes {
		lives = append(lives, reign{p.version, verify.Span{From: p.born, Until: p.died}})
	}
	var all []verify.Job
	versions := c.plan.registries()
	for _, name := range c.plan.jobNames() {
		known := verify.Job{Name: name, Asked: c.requests[name]}
		for v, same := range definitions(versions, name) {
			def, _ := versions[v].Get(name)
			known.Reshards = known.Reshards || known.Shards > 0 && known.Shards != def.Shards
			known.Shards = max(known.Shards, def.Shards)
			schedule, err := verify.Cron(def.Schedule, def.TimeZone)
			if err != nil {
				return nil, err
			}
			for _, s := range spans(lives, time.Now(), c.settle, same) {
				known.Versions = append(known.Versions, c.inForce(schedule, s)...)
			}
		}
		all = append(all, known)
	}
	return all, nil
}

// definitions are the different definitions of a job: the first version that has each, and which
// versions have the same.
func definitions(versions []*jobs.Registry, name string) map[int]func(version int) bool {
	digests := make([]string, len(versions)) // none where a version lacks the job
	for v, reg := range versions {
		if def, ok := reg.Get(name); ok {
			digests[v] = def.Definition().Digest()
		}
	}
	all := make(map[int]func(int) bool)
	for v, digest := range digests {
		if digest != "" && !slices.Contains(digests[:v], digest) {
			all[v] = func(version int) bool { return digests[version] == digest }
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

// defined is a version's job of that name.
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
	possible verify.Span
	certain  []verify.Span
}

// spans cuts the time at every birth and death, and says for each stretch whether a definition may
// have been in force: one that is in (in is asked by version) when a process of it lived, or had
// lived not longer than settle ago; surely when for so long no other did.
func spans(lives []reign, read time.Time, settle time.Duration, in func(version int) bool) []force {
	begin := lives[0].From
	cuts := []time.Time{begin, begin.Add(firstWords), read}
	for _, l := range lives {
		cuts = append(cuts, l.From, l.Until, l.Until.Add(settle))
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.Compact(cuts)
	var all []force
	for i := 0; i+1 < len(cuts) && cuts[i].Before(read); i++ {
		s := verify.Span{From: cuts[i], Until: cuts[i+1]}
		mine, others := false, false
		for _, l := range lives {
			near := l.From.Before(s.Until) && l.Until.Add(settle).After(s.From)
			mine, others = mine || near && in(l.version), others || near && !in(l.version)
		}
		if !mine {
			continue
		}
		if n := len(all); n == 0 || !all[n-1].possible.Until.Equal(s.From) {
			all = append(all, force{possible: s})
		}
		f := &all[len(all)-1]
		f.possible.Until = s.Until
		if others || s.From.Before(begin.Add(firstWords)) {
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

// inForce puts a force into the verifier's words, by Redis' clock. Where that clock was stepped and
// there is more than one definition, nobody can say which was in force at an instant.
func (c *cluster) inForce(schedule verify.Schedule, f force) []verify.Version {
	if len(c.plan.Versions) > 0 && len(c.redis.steps) > 0 {
		return []verify.Version{{Schedule: schedule, Possible: verify.Span{From: c.began.Add(-24 * time.Hour)}}}
	}
	possible := c.byRedis(f.possible)
	if len(f.certain) == 0 {
		return []verify.Version{{Schedule: schedule, Possible: possible}}
	}
	var all []verify.Version
	for _, s := range f.certain {
		certain := verify.Span{From: s.From.Add(c.redis.stepped(s.From)), Until: c.byRedis(s).Until}
		all = append(all, verify.Version{Schedule: schedule, Possible: possible, Certain: certain})
	}
	return all
}
