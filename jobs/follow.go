package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxHints bounds for how many unknown names a near one is looked for: each costs a
	// look at all names.
	maxHints = 100
	// maxCycle is how many jobs of a cycle an error prints.
	maxCycle = 8
)

// Check judges how the jobs go together, once all of them are there: what After names must
// be a job of the registry, and no job may wait for itself, not even through others. The
// error joins one *FieldError for each fault, sorted by the job's name; a cycle is one
// fault, of the job in it whose name comes first.
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
	slices.SortFunc(found, func(a, b *FieldError) int { return strings.Compare(a.Job, b.Job) })
	var f faults
	for _, e := range found {
		f = append(f, e)
	}
	return errors.Join(f...)
}

// follows returns what each job runs after: "" for one with a schedule.
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
		if len(found) < maxHints {
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
			continue // it ended, or came to where an earlier walk has been
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

// nearest returns the name, other than self, that is the fewest slips of the keyboard away
// from the one typed; "" when none is near: one slip in three letters, and two at most.
func nearest(typed string, names []string, self string) string {
	for slips := range 1 + min(2, len(typed)/3) {
		for _, name := range names {
			if name != self && within(strings.ToLower(typed), strings.ToLower(name), slips) {
				return name
			}
		}
	}
	return ""
}

// within reports whether a becomes b by inserting, dropping, replacing or swapping with
// their neighbours that many letters at most.
func within(a, b string, slips int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= slips
	}
	if slips == 0 {
		return false
	}
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && within(a[2:], b[2:], slips-1) {
		return true
	}
	return within(a[1:], b, slips-1) || within(a, b[1:], slips-1) || within(a[1:], b[1:], slips-1)
}
