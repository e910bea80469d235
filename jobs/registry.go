package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ErrDuplicate is returned when a job's name is already registered.
var ErrDuplicate = errors.New("jobs: name already registered")

// Registry is the set of jobs of a program. The zero value is empty. It is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	byName map[string]Job
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return new(Registry)
}

// Add adds a copy of j, filled with the built-in defaults and validated. The error is that of Job.Validate, with the job's
// name, or wraps ErrDuplicate; the registry is unchanged then.
func (r *Registry) Add(j Job) error {
	j = j.WithDefaults(Defaults{}).clone()
	//guard:job-validated P8 a job that cannot work is refused before anything is stored
	if err := j.Validate(); err != nil {
		return fmt.Errorf("job %q: %w", j.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byName[j.Name]; taken {
		return fmt.Errorf("job %q: %w; give one of the two another name", j.Name, ErrDuplicate)
	}
	if r.byName == nil {
		r.byName = make(map[string]Job)
	}
	r.byName[j.Name] = j
	return nil
}

// MustAdd adds a job as Add does, and panics on an error: for jobs in the program's source.
func (r *Registry) MustAdd(j Job) {
	if err := r.Add(j); err != nil {
		panic(err)
	}
}

// Get returns a copy of the job with that name, with its defaults filled in.
func (r *Registry) Get(name string) (Job, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	j, ok := r.byName[name]
	return j.clone(), ok
}

// All returns copies of all jobs, sorted by name.
func (r *Registry) All() []Job {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]Job, 0, len(r.byName))
	for _, j := range r.byName {
		all = append(all, j.clone())
	}
	slices.SortFunc(all, func(a, b Job) int { return strings.Compare(a.Name, b.Name) })
	return all
}
