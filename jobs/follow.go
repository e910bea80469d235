package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxSuggestions bounds the unknown names for which a similar one is searched among all names.
	maxSuggestions = 100
	// maxCycle is how many jobs of a cycle an error prints.
	maxCycle = 8
)

// Check checks the jobs together, after the last was added: each After must name a job of the registry, no job may follow
// itself, also not through others, and all jobs with one Limit.Group must have the same Limit.Max. The error joins a
// *FieldError for each fault, sorted by the job's name. A cycle is one fault, of the job whose name comes first.
func (r *Registry) Check() error {
	after := r.follows()
	names := make([]string, 0, len(after))
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	found := unknownFaults(names, after)
	for _, ring := range cycles(names, after) {
		found = append(found, cycleFault(ring))
	}
	found = append(found, r.limitFaults()...)
	slices.SortFunc(found, func(a, b *FieldError) int { return strings.Compare(a.Job, b.Job) })
	var f faults
	for _, e := range found {
		f = append(f, e)
	}
	return errors.Join(f...)
}

// limitFaults finds the jobs whose limit is another one than that of the first job, by name, of their group.
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

// follows returns the After of each job: "" for one with a schedule.
func (r *Registry) follows() map[string]string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	after := make(map[string]string, len(r.byName))
	for name, j := range r.byName {
		after[name] = j.After
	}
	return after
}

func unknownFaults(names []string, after map[string]string) (found []*FieldError) {
	for _, name := range names {
		upstream := after[name]
		if _, known := after[upstream]; upstream == "" || known {
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

// cycles returns each cycle once, as the jobs in it, each before the one it waits for, from
// the first name on. A job waits for one other at most, so cycles have no job in common.
func cycles(names []string, after map[string]string) (found [][]string) {
	walk := make(map[string]int, len(names)) // the walk that came to the job first, from 1
	for i, name := range names {
		for name != "" && walk[name] == 0 {
			walk[name] = i + 1
			name = after[name]
		}
		if name == "" || walk[name] != i+1 {
			continue // it ended, or met an earlier walk
		}
		ring := []string{name}
		for next := after[name]; next != name; next = after[next] {
			ring = append(ring, next)
		}
		first := slices.Index(ring, slices.Min(ring))
		found = append(found, slices.Concat(ring[first:], ring[:first]))
	}
	return found
}

// nearest returns the name, other than self, with the fewest typos between it and typed; "" when there are more than one typo
// in three letters, or two.
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

// within reports whether a becomes b by at most that many typos: a letter inserted, dropped, replaced or swapped with the next.
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
