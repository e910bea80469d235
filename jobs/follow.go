package jobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxSuggestions bounds the unknown names for which a similar one is searched among all names.
	maxSuggestions = 100
	// maxCycle is how many jobs of a cycle an error prints.
	maxCycle = 8
)

// Check checks the jobs together, after the last was added: each After must name jobs of the
// registry, no job may follow itself, also not through other jobs, the upstreams of one job must
// begin with the same ticks, and all jobs with one Limit.Group must have the same Limit.Max. The
// error joins a *FieldError for each fault, sorted by the job's name. Of jobs that wait for each
// other, one circle is named.
func (r *Registry) Check() error {
	after := r.follows()
	names := slices.Sorted(maps.Keys(after))
	found := unknownFaults(names, after)
	rings := cycles(names, after)
	for _, ring := range rings {
		found = append(found, cycleFault(ring))
	}
	if len(rings) == 0 {
		found = append(found, r.rootFaults(names, after)...)
	}
	found = append(found, r.limitFaults()...)
	slices.SortStableFunc(found, func(a, b *FieldError) int { return strings.Compare(a.Job, b.Job) })
	var f faults
	for _, e := range found {
		f = append(f, e)
	}
	return errors.Join(f...)
}

// rootFaults finds the jobs whose upstreams have different ticks: such a job would wait for ever
// for one upstream. The caller has excluded circles.
func (r *Registry) rootFaults(names []string, after map[string][]string) (found []*FieldError) {
	for _, name := range names {
		ups := after[name]
		if len(ups) < 2 {
			continue
		}
		first, known := r.root(ups[0], after)
		for _, up := range ups[1:] {
			other, alsoKnown := r.root(up, after)
			if known && alsoKnown && first != other {
				found = append(found, &FieldError{Job: name, Field: "after", Msg: fmt.Sprintf("%q begins with %q, and %q with %q: "+
					"they never end the same tick; give those the same schedule and time zone, or follow one of them", ups[0], first, up, other)})
				break
			}
		}
	}
	return found
}

// root is the schedule with which a chain of jobs begins. With several upstreams, root follows the
// first: all have the same schedule, or are a fault themselves.
func (r *Registry) root(name string, after map[string][]string) (ticks string, known bool) {
	for len(after[name]) > 0 {
		name = after[name][0]
	}
	j, known := r.Get(name)
	if !known {
		return "", false
	}
	s, err := j.ParsedSchedule()
	if err != nil {
		return "", false
	}
	return s.Resolved(), true
}

// limitFaults finds the jobs whose limit differs from the limit of the group's first job, by name.
func (r *Registry) limitFaults() (found []*FieldError) {
	first := make(map[string]Job)
	for _, j := range r.All() {
		of, some := first[j.Limit.Group]
		switch {
		case j.Limit.Group == "":
		case !some:
			first[j.Limit.Group] = j
		case of.Limit.Max != j.Limit.Max:
			found = append(found, &FieldError{Job: j.Name, Field: "limit.max", Msg: fmt.Sprintf("%d, and %d at job %q; give all jobs of group %q the same",
				j.Limit.Max, of.Limit.Max, of.Name, j.Limit.Group)})
		}
	}
	return found
}

// follows returns the After of each job: nil for one with a schedule.
func (r *Registry) follows() map[string][]string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	after := make(map[string][]string, len(r.byName))
	for name, j := range r.byName {
		after[name] = j.After
	}
	return after
}

func unknownFaults(names []string, after map[string][]string) (found []*FieldError) {
	for _, name := range names {
		for _, upstream := range after[name] {
			if _, known := after[upstream]; known {
				continue
			}
			msg := fmt.Sprintf("there is no job %q; name a job that is defined here", upstream)
			if len(found) < maxSuggestions {
				if n := nearest(upstream, names, name); n != "" {
					msg = fmt.Sprintf("there is no job %q; did you mean %q", upstream, n)
				}
			}
			found = append(found, &FieldError{Job: name, Field: "after", Msg: msg})
		}
	}
	return found
}

func cycleFault(ring []string) *FieldError {
	fault := &FieldError{Job: ring[0], Field: "after"}
	if len(ring) == 1 {
		fault.Msg = fmt.Sprintf("a job cannot run after itself: %s -> %s; give it a schedule", ring[0], ring[0])
		return fault
	}
	shown := ring
	if len(ring) > maxCycle {
		shown = append(slices.Clone(ring[:maxCycle]), fmt.Sprintf("%d more", len(ring)-maxCycle))
	}
	fault.Msg = fmt.Sprintf("jobs wait for each other in a circle: %s -> %s; give one of them a schedule",
		strings.Join(shown, " -> "), ring[0])
	return fault
}

// cycles returns a shortest circle of each group of jobs that wait for each other: each job stands
// before its upstream, beginning with the group's first name.
func cycles(names []string, after map[string][]string) (found [][]string) {
	left := circular(names, after)
	done := make(map[string]bool)
	for _, name := range left {
		if done[name] {
			continue
		}
		came := map[string]string{} // by which job each was reached first
		for line := []string{name}; len(line) > 0; line = line[1:] {
			for _, next := range after[line[0]] {
				if _, seen := came[next]; !seen {
					came[next] = line[0]
					line = append(line, next)
				}
			}
		}
		if _, back := came[name]; !back {
			continue // it waits for a circle, and is in none
		}
		ring := []string{name}
		for at := came[name]; at != name; at = came[at] {
			ring = append(ring, at)
		}
		slices.Reverse(ring[1:])
		found = append(found, ring)
		group := map[string]bool{name: true} // jobs that lead back to the name
		for grown := true; grown; {
			grown = false
			for at := range came {
				if !group[at] && slices.ContainsFunc(after[at], func(up string) bool { return group[up] }) {
					group[at], grown = true, true
				}
			}
		}
		maps.Copy(done, group)
	}
	return found
}

// circular returns the names of jobs in a circle or behind one: none in an ordinary registry.
func circular(names []string, after map[string][]string) []string {
	waits, followers := make(map[string]int, len(names)), make(map[string][]string)
	var free []string
	for _, name := range names {
		for _, up := range after[name] {
			if _, known := after[up]; known {
				waits[name]++
				followers[up] = append(followers[up], name)
			}
		}
		if waits[name] == 0 {
			free = append(free, name)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, f := range followers[free[0]] {
			if waits[f]--; waits[f] == 0 {
				free = append(free, f)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return waits[name] == 0 })
}

// nearest returns the name, other than self, with the fewest typos between it and typed; "" when
// there are more than one typo in three letters, or two.
func nearest(typed string, names []string, self string) string {
	for typos := range 1 + min(2, len(typed)/3) {
		for _, name := range names {
			if name != self && within(strings.ToLower(typed), strings.ToLower(name), typos) {
				return name
			}
		}
	}
	return ""
}

// within reports whether a becomes b by at most that many typos: a letter inserted, dropped,
// replaced or swapped with the next.
func within(a, b string, typos int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= typos
	}
	if typos == 0 {
		return false
	}
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && within(a[2:], b[2:], typos-1) {
		return true
	}
	return within(a[1:], b, typos-1) || within(a, b[1:], typos-1) || within(a[1:], b[1:], typos-1)
}
