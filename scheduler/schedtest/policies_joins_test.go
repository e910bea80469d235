package schedtest

import (
	"math/rand/v2"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// joined gives followers a When, and in two of three plans adds a job that follows two others: two
// jobs with the same schedule, two followers of the same job, or a job and its follower.
func joined(seed uint64, all []jobs.Job) []jobs.Job {
	d := &dice{rand.New(rand.NewPCG(wire.Fold(seed, "joins"), 0x101))}
	whens := []jobs.When{jobs.WhenSucceeded, jobs.WhenSucceeded, jobs.WhenFailed, jobs.WhenAny}
	for i := range all {
		if len(all[i].After) > 0 {
			all[i].When = pick(d, whens)
		}
	}
	add := func(name string, after ...string) {
		j := chosen(d, seed, jobs.Job{Name: name, After: after, TTL: 3 * second})
		j.When = pick(d, whens)
		all = append(all, policyParts(seed, 0, j))
	}
	switch d.IntN(6) {
	case 0, 1:
		all[0].Schedule = pick(d, []string{"* * * * * *", "@every 700ms", "@every 3s"}) // H is another one for each job
		all[1].Schedule = all[0].Schedule
		all[0].Jitter, all[1].Jitter = 0, 0 // as is the offset
		add("join", all[1].Name, all[0].Name)
	case 2:
		add("left", all[0].Name)
		add("right", all[0].Name)
		add("join", "left", "right")
	case 3:
		add("left", all[0].Name)
		add("join", "left", all[0].Name)
	}
	return all
}

// begins reports whether a join begins with job-1, and name is job-1 or job-0.
func begins(all []jobs.Job, name string) bool {
	for _, j := range all {
		if len(j.After) > 1 && j.After[0] == "job-1" {
			return name == "job-0" || name == "job-1"
		}
	}
	return false
}
