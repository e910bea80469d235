package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrStopping is returned by Node.Add and Node.Change when the node is stopping and the jobs are in
// order otherwise. Add them to another node.
var ErrStopping = errors.New("the node is stopping; add the jobs to another one")

// Add adds jobs to the node, before Run or while it runs. They are checked together with the jobs
// that the node has; either all are added or none. Other nodes need not have them. Add does not
// wait for Redis: a job is claimed once its definition is stored there, within about a second. To
// change a job, see Change.
func (n *Node) Add(list ...jobs.Job) error {
	if err := n.exchange(Change{Add: list}); err != nil {
		return fmt.Errorf("scheduler: add jobs: %w", err)
	}
	return nil
}

// Remove removes jobs from the node, all or none, before Run or while it runs. The node claims no
// further runs of them; granted runs go on to their end. In Redis a job stays, with its history, as
// after a deploy that drops it: other nodes that have the job go on, and without one its ticks
// wait. ops.Client.Delete deletes it. Remove refuses a job that another job of the node follows.
func (n *Node) Remove(names ...string) error {
	if err := n.exchange(Change{Remove: names}); err != nil {
		return fmt.Errorf("scheduler: remove jobs: %w", err)
	}
	return nil
}

// Change is a change of a node's jobs.
type Change struct {
	// Add are jobs to add. A job whose name is in Remove too is replaced: its granted runs go on to
	// their end with the old function.
	Add []jobs.Job
	// Remove are the names of jobs to remove.
	Remove []string
	// Revision takes the place of Config.Revision, at most 128 bytes. Default: it stays.
	Revision string
}

// Change changes the node's jobs in one step, before Run or while it runs. The jobs that the node
// then has are checked together; either the whole change is made or nothing of it. Jobs in neither
// list are not disturbed.
//
// A replaced job follows the rules for a deploy. Of two nodes with different definitions, the
// greater revision wins. Of equal revisions the latest change wins, but a definition that was
// replaced before comes back only when no living node holds its successor.
func (n *Node) Change(c Change) error {
	if err := n.exchange(c); err != nil {
		return fmt.Errorf("scheduler: change jobs: %w", err)
	}
	return nil
}

// exchange checks a change of the node's jobs and makes it.
func (n *Node) exchange(c Change) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	out, err := n.named(c.Remove)
	if err != nil {
		return err
	}
	reg, err := registryOf(slices.DeleteFunc(slices.Clone(n.jobs.All()), func(j *work.Job) bool { return slices.Contains(out, j) }))
	added := slices.Clone(c.Add)
	for i, j := range added {
		if has := n.jobs.Named(j.Name); has != nil && isStored(has) && !slices.Contains(out, has) {
			err = errors.Join(err, fmt.Errorf("job %s: a stored job has this name; delete it with `jobs delete %s`, or choose another name", j.Name, j.Name))
			continue
		}
		if err = errors.Join(err, reg.Add(j)); err == nil {
			added[i], _ = reg.Get(j.Name) // with its defaults
		}
	}
	cfg := n.cfg
	cfg.Revision = cmp.Or(c.Revision, n.jobs.Revision())
	if err == nil {
		err = cfg.validate(reg)
	}
	if err != nil {
		return err
	}
	in, err := jobsOf(added, n.cfg)
	switch {
	case err != nil:
		return err
	case len(in) > 0 && n.state.Stopping.Load():
		return ErrStopping
	}
	n.change(in, out, cfg.Revision)
	return nil
}

// named are the node's jobs of these names.
func (n *Node) named(names []string) (list []*work.Job, err error) {
	for _, name := range names {
		j := n.jobs.Named(name)
		if j == nil || slices.Contains(list, j) {
			err = errors.Join(err, fmt.Errorf("the node has no job %q to remove", name))
			continue
		}
		list = append(list, j)
	}
	return list, err
}

// registryOf makes a registry of a node's jobs.
func registryOf(all []*work.Job) (*jobs.Registry, error) {
	reg := jobs.NewRegistry()
	var errs []error
	for _, j := range all {
		if isStored(j) {
			errs = append(errs, reg.Add(withoutUpstreams(j.Job)))
			continue
		}
		errs = append(errs, reg.Add(j.Job))
	}
	return reg, errors.Join(errs...)
}
