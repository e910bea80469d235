package jobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/escapement/escapement/jobs/spec"
)

// ErrDuplicate is returned when a job's name is already registered.
var ErrDuplicate = errors.New("jobs: name already registered")

// Registry is the set of jobs of a program. The zero value is empty. It is safe for concurrent use.
type Registry struct {
	mu       sync.RWMutex
	byName   map[string]Job
	handlers map[string]Func
	shapes   map[string]string // of the payloads of handlers with a type
	owner    string            // the node that has read the registry, as given to Freeze; "" for none
}

// ErrFrozen is returned when a job or a handler is added to a registry that a node has read: the
// node would not have it.
var ErrFrozen = errors.New("jobs: the registry was read already")

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return new(Registry)
}

// Add adds a copy of j, filled with the built-in defaults and validated. A job that names a handler
// of the registry gets its function. The error comes from Job.Validate, with the job's name, or
// wraps ErrDuplicate or ErrFrozen; the registry is unchanged then.
func (r *Registry) Add(j Job) error {
	j = j.WithDefaults(Defaults{}).clone()
	if f, known := r.Handler(j.Handler); known && j.Func == nil {
		j.Func = f
	}
	//guard:job-validated P8 a job that cannot work is refused before anything is stored
	if err := j.Validate(); err != nil {
		return fmt.Errorf("job %q: %w", j.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	//guard:registry-frozen P8 a job that no node would run is refused
	if r.owner != "" {
		return fmt.Errorf("job %q: %w, by %s; add the job before, or with Node.Add", j.Name, ErrFrozen, r.owner)
	}
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

// Handle adds a function that jobs may name as their Handler: jobs of this registry that are added
// later, and jobs that are stored at run time, see Client.PutJob in package ops. A node runs the
// stored jobs of its handlers. The name has the form of a job's.
func (r *Registry) Handle(name string, f Func) error {
	switch {
	case !spec.IsName(name):
		return &FieldError{Field: "handler", Msg: fmt.Sprintf("%q is not a handler's name; %s", clip(name), nameForm)}
	case f == nil:
		return &FieldError{Field: "handler", Msg: fmt.Sprintf("%s has no function; give it one", name)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	//guard:handlers-frozen P8 a handler that no node would have is refused
	if r.owner != "" {
		return fmt.Errorf("handler %q: %w, by %s; add the handler before", name, ErrFrozen, r.owner)
	}
	if _, taken := r.handlers[name]; taken {
		return &FieldError{Field: "handler", Msg: name + " is there already; give one of the two another name"}
	}
	if r.handlers == nil {
		r.handlers = make(map[string]Func)
	}
	r.handlers[name] = f
	return nil
}

// Freeze refuses all further jobs and handlers with ErrFrozen, and names owner in the error. The
// constructor of a node calls Freeze, because a node reads the registry once. Several nodes may
// read one registry; the first of them is named.
func (r *Registry) Freeze(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner == "" {
		r.owner = owner
	}
}

// Handler returns the function of a handler.
func (r *Registry) Handler(name string) (Func, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f, ok := r.handlers[name]
	return f, ok
}

// Handlers returns the names of all handlers, sorted.
func (r *Registry) Handlers() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.handlers))
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
