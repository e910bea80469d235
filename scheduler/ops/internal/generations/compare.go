package generations

import (
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Comparison is a generation's jobs, and how they differ from the active definitions. Names are in
// order.
type Comparison struct {
	// Jobs is how many jobs it has, in the definitions that its living nodes hold or, without such
	// nodes, that are stored for it.
	Jobs int
	// Running is how many of the stored jobs it runs.
	Running int
	// Added are jobs that it has and that no generation runs now. Removed are jobs that it does not
	// have.
	Added, Removed []string
	// Unsettled are jobs that its living nodes hold and whose definitions are not stored yet.
	Unsettled []string
	// Others are jobs that another generation runs and that it has too.
	Others []Change
}

// Change is a job as it is run now, and as a generation has it.
type Change struct {
	Job      string
	Now, New jobs.Definition
}

// Compare compares a generation, which must be one of Names, with the active definitions.
func (k *Known) Compare(name string) (c Comparison) {
	g := k.of[name]
	all := make(map[string]bool)
	for _, s := range k.stored {
		all[s.Job] = true
	}
	for job := range g.kept {
		all[job] = true
	}
	for job := range g.held {
		all[job] = true
	}
	for _, job := range slices.Sorted(maps.Keys(all)) {
		its, stored := k.runs(name, job)
		a := g.kept[job]
		if g.alive > 0 && g.held[job] == nil { // no living node has it any more
			a = nil // left over
		}
		switch {
		case its && k.orphans[job]:
			c.Removed = append(c.Removed, job)
		case its:
			c.Running++
			if g.held[job] != nil || g.alive == 0 {
				c.Jobs++
			}
		case a == nil && g.held[job] != nil:
			c.Jobs++
			c.Unsettled = append(c.Unsettled, job)
		case a == nil && stored:
			c.Removed = append(c.Removed, job)
		case a == nil: // its record cannot be read, or no living node has it any more
		case !stored || k.orphans[job]:
			c.Jobs++
			c.Added = append(c.Added, job)
		default:
			c.Jobs++
			c.Others = append(c.Others, Change{Job: job, Now: k.defs[job], New: a.def})
		}
	}
	return c
}

// Rescheduled reports whether the job would run at other times.
func (c Change) Rescheduled() bool {
	return !c.Now.SameTicks(c.New)
}

// Settings are the settings in which the definitions differ, other than when the job runs.
func (c Change) Settings() []string {
	var names []string
	for _, setting := range jobs.Settings.Diff(&c.Now.Job, &c.New.Job) {
		if !setting.Ticks {
			names = append(names, setting.Name)
		}
	}
	return names
}

// walkMax bounds how many ticks are compared one by one.
const walkMax = 10_000

// Apart returns the first ticks between two instants that only one of two schedules has, at most
// that many of each. A nil schedule has none.
func Apart(a, b *jobs.Schedule, after, end time.Time, most int) (onlyA, onlyB []time.Time) {
	next := func(s *jobs.Schedule, after time.Time) time.Time {
		if s != nil {
			if t := s.Next(after); !t.IsZero() && t.Before(end) {
				return t
			}
		}
		return end
	}
	x, y := next(a, after), next(b, after)
	for range walkMax {
		switch {
		case len(onlyA) >= most && len(onlyB) >= most, x.Equal(end) && y.Equal(end):
			return onlyA[:min(most, len(onlyA))], onlyB[:min(most, len(onlyB))]
		case x.Equal(y):
			x, y = next(a, x), next(b, y)
		case x.Before(y):
			onlyA, x = append(onlyA, x), next(a, x)
		default:
			onlyB, y = append(onlyB, y), next(b, y)
		}
	}
	return onlyA[:min(most, len(onlyA))], onlyB[:min(most, len(onlyB))]
}
