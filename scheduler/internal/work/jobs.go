package work

import "sync/atomic"

// Jobs are the jobs of a node, in the order in which it came to have them. They may be read while they change.
type Jobs struct{ now atomic.Pointer[held] }

// held is what Jobs are at a time. It does not change.
type held struct {
	all      []*Job
	byName   map[string]*Job
	followed map[string]bool
	next     int // index of the job that is added next
	version  int
}

// NewJobs lists jobs, each of which gets its Index.
func NewJobs(all []*Job) *Jobs {
	s := &Jobs{}
	s.now.Store(&held{})
	s.Change(all, nil)
	return s
}

// Change takes some jobs out and others in, which get an Index. There is one caller at a time.
func (s *Jobs) Change(in []*Job, out []*Job) {
	old := s.now.Load()
	now := &held{
		all: make([]*Job, 0, len(old.all)+len(in)), byName: make(map[string]*Job, len(old.all)+len(in)), followed: make(map[string]bool),
		next: old.next, version: old.version + 1,
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
		j.Index = now.next
		now.all, now.next = append(now.all, j), now.next+1
	}
	for _, j := range now.all {
		now.byName[j.Name], now.followed[j.After] = j, true
	}
	s.now.Store(now)
}

// All are the jobs; the list is not to be changed.
func (s *Jobs) All() []*Job { return s.now.Load().all }

// Len is how many there are.
func (s *Jobs) Len() int { return len(s.All()) }

// Version is another number after each change.
func (s *Jobs) Version() int { return s.now.Load().version }

// Named is the job of that name, nil when the node has none.
func (s *Jobs) Named(name string) *Job { return s.now.Load().byName[name] }

// Followed says whether a job of the node follows one of that name.
func (s *Jobs) Followed(name string) bool { return s.now.Load().followed[name] }
