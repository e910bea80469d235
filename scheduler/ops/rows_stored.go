package ops

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/jobs"
)

type deleteIn struct {
	Named
	Was time.Time `query:"was"` // the version that is deleted; with another one stored the request is refused
}

var rowDeleteJob = &Operation[deleteIn, None]{
	Info: Info{Method: "DELETE", Path: "jobs/{name}", Role: Operator, Audit: "jobs delete", Summary: "delete a stored job, or one that no node holds, with its history"},
	do: func(ctx context.Context, c *conn, in deleteIn) (None, error) {
		return done(deleteJobs(ctx, c, []StoredJob{{Job: jobs.Job{Name: in.Name}, Version: in.Was}})[in.Name])
	},
	note: func(in deleteIn, _ None) Action { return Action{Target: in.Name} },
}

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
	_, err := call(ctx, c, rowDeleteJob, deleteIn{Named{name}, was})
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

type putIn struct {
	Named
	PutOptions
	Job    StoredJob `whole:"yes"`
	unread error
}

// Unread takes the faults of a body of which some settings could not be read.
func (in *putIn) Unread(err error) { in.unread = err }

var rowPutJob = &Operation[putIn, StoredJob]{
	Info: Info{Method: "PUT", Path: "jobs/{name}", Role: Operator, Audit: "jobs put", Summary: "store a job that names a handler, or replace a stored one"},
	do:   putOne,
	dry:  func(in putIn) bool { return in.DryRun },
	note: func(in putIn, out StoredJob) Action {
		if out.unchanged {
			return Action{Target: in.Name, Detail: "unchanged"}
		}
		return Action{Target: in.Name, Detail: cmp.Or(out.Schedule, in.Job.Schedule)}
	},
}

// PutJob stores a job that names a handler, or replaces a stored one, and returns it with its
// version. Nodes with the handler (jobs.Registry.Handle) learn of the job within a second, and run
// it as a job of their own; without such a node, its ticks wait, as for any job without a node. A
// replaced job keeps its history and cursor. A job that is stored already with these settings keeps
// its version, and nothing changes.
//
// It returns ErrRefused with a *jobs.FieldError for each wrong setting, for a handler that no node
// has declared in this namespace, for a payload that does not fit the type of a handler of
// jobs.HandleTyped, for a job with a function, for a limit that differs from its group's stored
// jobs (the 10,000 jobs that were changed the longest ago), for the name of a program's job, and
// for a stored version other than o.Was. Nothing is stored then.
func (c *Client) PutJob(ctx context.Context, j jobs.Job, o PutOptions) (StoredJob, error) {
	return call(ctx, c, rowPutJob, putIn{Named: Named{j.Name}, PutOptions: o, Job: StoredJob{Job: j}})
}

// PutJobs is PutJob for many jobs. On Redis all are checked before any is stored. Then they are
// stored in steps of some hundreds: after an error beside stored jobs, those are stored. Over HTTP
// each job is a request of its own.
func (c *Client) PutJobs(ctx context.Context, list []jobs.Job, o PutOptions) (stored []StoredJob, err error) {
	if c.remote == nil {
		stored, err = putJobs(ctx, c.conn, list, o)
		return stored, c.notePut(ctx, list, stored, o, err)
	}
	for _, j := range list {
		s, err := c.PutJob(ctx, j, o)
		if err != nil {
			return stored, err
		}
		stored = append(stored, s)
	}
	return stored, nil
}

type storedIn struct {
	Names []string `query:"name"` // only the stored job of this name; once for each
}

var rowStoredJobs = &Operation[storedIn, []StoredJob]{
	Info: Info{Method: "GET", Path: "stored-jobs", Role: Viewer, Summary: "the jobs that were stored at run time, by name, with all settings"},
	do: func(ctx context.Context, c *conn, in storedIn) ([]StoredJob, error) {
		return storedJobs(ctx, c, in.Names...)
	},
}

// StoredJobs reads stored jobs by their names, all of them without names. A name without a stored
// job is ErrUnknownJob.
func (c *Client) StoredJobs(ctx context.Context, names ...string) ([]StoredJob, error) {
	return call(ctx, c, rowStoredJobs, storedIn{names})
}

var rowHandlers = read("handlers", "the handlers that stored jobs may name", plain(listHandlers))

// ListHandlers lists the handlers that nodes have declared, by name.
func (c *Client) ListHandlers(ctx context.Context) ([]HandlerView, error) {
	return call(ctx, c, rowHandlers, None{})
}
