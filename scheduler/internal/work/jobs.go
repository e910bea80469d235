package work

// Jobs are the jobs of a node, in a fixed order. They do not change.
type Jobs struct {
	All    []*Job
	byName map[string]*Job
}

// NewJobs lists jobs, each of which stands where its Index says.
func NewJobs(all []*Job) *Jobs {
	s := &Jobs{All: all, byName: make(map[string]*Job, len(all))}
	for _, j := range all {
		s.byName[j.Name] = j
	}
	return s
}

// Named is the job of that name, nil when the node has none.
func (s *Jobs) Named(name string) *Job { return s.byName[name] }
