package work

import "sync/atomic"

// Jobs are the jobs of a node, in the order in which they were added. They may be read while they
// change.
type Jobs struct{ now atomic.Pointer[snapshot] }

// snapshot is an unchanging state of Jobs.
type snapshot struct {
	all       []*Job
	byName    map[string]*Job
	followed  map[string]bool
	nextIndex int // index of the job that is added next
	version   int
	revision  string
}

// NewJobs makes the list of a node's jobs, of a revision, and gives each its Index.
func NewJobs(all []*Job, revision string) *Jobs {
	s := &Jobs{}
	s.now.Store(&snapshot{})
	s.Change(all, nil, revision)
	return s
}

// Change adds jobs, which get an Index, and removes other jobs. The jobs then are of the revision.
// Only one caller at a time.
func (s *Jobs) Change(in []*Job, out []*Job, revision string) {
	old := s.now.Load()
	now := &snapshot{
		all: make([]*Job, 0, len(old.all)+len(in)), byName: make(map[string]*Job, len(old.all)+len(in)), followed: make(map[string]bool),
		nextIndex: old.nextIndex, version: old.version + 1, revision: revision,
	}
	gone := make(map[*Job]bool, len(out))
	for _, j := range out {
		gone[j] = true
	}
	for _, j := range old.all {
		if !gone[j] {
			now.all = append(now.all, j)
		}
	}
	for _, j := range in {
		j.Index = now.nextIndex
		now.all, now.nextIndex = append(now.all, j), now.nextIndex+1
	}
	for _, j := range now.all {
		now.byName[j.Name] = j
		for _, upstream := range j.After {
			now.followed[upstream] = true
		}
	}
	s.now.Store(now)
}

// All returns the jobs. The caller must not change the list.
func (s *Jobs) All() []*Job { return s.now.Load().all }

// Len is the number of jobs.
func (s *Jobs) Len() int { return len(s.All()) }

// Version differs after each change.
func (s *Jobs) Version() int { return s.now.Load().version }

// Revision is the revision of these jobs' definitions.
func (s *Jobs) Revision() string { return s.now.Load().revision }

// Named returns the job of that name, nil when the node has none.
func (s *Jobs) Named(name string) *Job { return s.now.Load().byName[name] }

// Followed reports whether a job of the node follows the job of that name.
func (s *Jobs) Followed(name string) bool { return s.now.Load().followed[name] }
