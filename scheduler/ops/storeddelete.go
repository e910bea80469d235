package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/ops/internal/generations"
)

const (
	// deleteWithin is how long Delete waits until no node holds the job and no run of it is in flight.
	deleteWithin = 5 * time.Second
	// heldEvery is how often Delete reads which nodes still hold the job; nodes read the catalog
	// twice a second.
	heldEvery = 250 * time.Millisecond
)

type deleteIn struct {
	named
	Was time.Time `query:"was"` // the version that is deleted; with another one stored the request is refused
}

var rowDeleteJob = row(&Operation[deleteIn, None]{
	Info: Info{Method: "DELETE", Path: "jobs/{name}", Role: Operator, Audit: "jobs delete", Summary: "delete a stored job, or one that no node holds, with its history"},
	do: func(ctx context.Context, c *conn, in deleteIn) (None, error) {
		return done(deleteJobs(ctx, c, []StoredJob{{Job: jobs.Job{Name: in.Name}, Version: in.Was}})[in.Name])
	},
	note: func(in deleteIn, _ None) Action { return Action{Target: in.Name} },
})

// Delete deletes a job with its history.
//
// Of a stored job nodes claim nothing more. Delete waits until they have dropped it and its runs
// have ended, for five seconds at most. When a run is in flight even then, the job is deleted and
// its history stays; the error wraps ErrRefused, and a later Delete deletes the history. was is the
// version that is deleted, zero for any; ErrRefused when another one is stored.
//
// A job of a program is refused (ErrRefused) while a run of it is in flight or living nodes hold
// it, because they would register it again; the error names them. It returns ErrUnknownJob for a
// job that is not there.
func (c *Client) Delete(ctx context.Context, name string, was time.Time) error {
	_, err := call(ctx, c, rowDeleteJob, deleteIn{named{name}, was})
	return err
}

// DeleteJobs is Delete for many jobs, each by its name, and in its Version alone. It returns the
// names of jobs that are deleted with their history; the error is about the rest.
func (c *Client) DeleteJobs(ctx context.Context, list []StoredJob) (deleted []string, err error) {
	failed := make(map[string]error)
	if c.remote == nil {
		failed = deleteJobs(ctx, c.conn, list)
	}
	var faults []error
	for _, j := range list {
		err := failed[j.Name]
		if c.remote != nil {
			err = c.Delete(ctx, j.Name, j.Version)
		} else {
			err = c.Note(ctx, Action{Name: rowDeleteJob.Audit, Target: j.Name}, err)
		}
		if faults = append(faults, err); err == nil {
			deleted = append(deleted, j.Name)
		}
	}
	return deleted, errors.Join(faults...)
}

// deleteJobs deletes jobs, and returns why some were not deleted, or not with their history.
func deleteJobs(ctx context.Context, c *conn, list []StoredJob) map[string]error {
	l, closed := c.OpenCatalog(ctx)
	why := make(map[string]error)
	for some := range slices.Chunk(list, catalog.Page) {
		failed, began := make(map[string]error), time.Now()
		if closed == nil {
			failed = dropStored(ctx, l, some)
		}
		for _, j := range some {
			err := cmp.Or(closed, failed[j.Name])
			switch {
			case err == nil:
				err = removeDropped(ctx, c, l, j.Name, began)
			case errors.Is(err, ErrUnknownJob):
				err = removeJob(ctx, c, l, j.Name)
			}
			why[j.Name] = err
		}
	}
	return why
}

// dropStored takes jobs out of the catalog, and returns why it did not take some: ErrUnknownJob for
// a job that is not there.
func dropStored(ctx context.Context, l *ledger.Ledger, list []StoredJob) (failed map[string]error) {
	failed = make(map[string]error)
	was := make(map[string]string, len(list))
	names := make([]string, len(list))
	for i, j := range list {
		names[i], was[j.Name] = j.Name, PutOptions{Was: j.Version}.was()
	}
	all := func(err error) map[string]error {
		for _, name := range names {
			failed[name] = cmp.Or(failed[name], err)
		}
		return failed
	}
	found, err := catalog.Jobs(ctx, l, names...)
	if err != nil {
		return all(err)
	}
	var changes []catalog.Change
	for _, f := range found {
		if f.Definition == "" {
			failed[f.Job] = ErrUnknownJob
			continue
		}
		changes = append(changes, catalog.Change{Job: f.Job, Was: was[f.Job]})
	}
	if len(changes) == 0 {
		return failed
	}
	answers, err := catalog.Apply(ctx, l, changes)
	if err != nil {
		return all(err)
	}
	for i, a := range answers {
		if !a.Done {
			failed[changes[i].Job] = fmt.Errorf("%w: delete job %s: %s; read it again", ErrRefused, changes[i].Job, standing(a))
		}
	}
	return failed
}

// removeJob deletes a job of a program, or the remains of a stored one, that no living node holds.
func removeJob(ctx context.Context, c *conn, l *ledger.Ledger, name string) error {
	s, err := query.Job(ctx, l, name)
	if err != nil {
		return err
	}
	nodes, unclear, err := inspect.HeldBy(ctx, l, c.Roster(), name)
	if err != nil {
		return err
	}
	d, _ := jobs.ParseDefinition(s.Definition) // an unreadable one names no job that it follows
	if len(nodes) > 0 && d.Stored > 0 {
		return fmt.Errorf("%w: delete job %s: it is a stored job, which nodes hold", ErrRefused, name)
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%w: delete job %s: held by %s; take the job out of their configuration and restart them", ErrRefused, name, generations.Some(nodes))
	}
	if unclear > 0 {
		return fmt.Errorf("%w: delete job %s: what %d of the living nodes hold cannot be read by this version; use the newest one (a node that is up drops those which are gone)", ErrRefused, name, unclear)
	}
	if err := operate.Remove(ctx, l, name); err != nil {
		return err
	}
	for _, upstream := range d.After {
		if err := follow.Unfollow(ctx, l, 0, upstream, name); err != nil {
			return fmt.Errorf("job %s is deleted; that it followed %s is still noted, which does no harm: %w", name, upstream, err)
		}
	}
	return nil
}

// removeDropped removes what the namespace has of a job that was taken out of the catalog, when no
// node holds the job any more and its runs have ended.
func removeDropped(ctx context.Context, c *conn, l *ledger.Ledger, name string, began time.Time) error {
	for ; ; wait.For(ctx, heldEvery) {
		held, err := inspect.HeldStored(ctx, l, c.Roster(), name)
		switch {
		case err != nil:
			return err
		case len(held) == 0:
			done, err := removeEntry(ctx, l, name)
			inFlight := errors.Is(err, ErrRefused) && ctx.Err() == nil && time.Since(began) <= deleteWithin
			if done || err != nil && !inFlight {
				return err
			}
		case ctx.Err() != nil || time.Since(began) > deleteWithin:
			return fmt.Errorf("%w: job %s is deleted, and nothing more is claimed; its history stays, for %s still hold it: delete it again", ErrRefused, name, strings.Join(held, ", "))
		}
	}
}

// removeEntry removes the entry of a stored job, with its history. It reports whether there is none
// any more: a program may have registered a job of that name meanwhile, and that one stays. False
// when the entry has just changed.
func removeEntry(ctx context.Context, l *ledger.Ledger, name string) (bool, error) {
	s, err := query.Job(ctx, l, name)
	if errors.Is(err, ErrUnknownJob) { // never registered
		return true, nil
	}
	if err == nil {
		if d, unreadable := jobs.ParseDefinition(s.Definition); unreadable == nil && d.Stored == 0 {
			return true, nil
		}
		var done bool
		if done, err = operate.RemoveDefined(ctx, l, name, s.Digest); err == nil || errors.Is(err, ErrUnknownJob) {
			return done || err != nil, nil
		}
	}
	return false, fmt.Errorf("job %s is deleted; its history stays, delete it again: %w", name, err)
}
