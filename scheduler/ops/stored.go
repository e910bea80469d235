package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/ops/internal/storecheck"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// StoredJob is a job that is stored in the namespace, and not in a program. Its JSON has the
// settings that have a value, and the version.
type StoredJob struct {
	jobs.Job           // without a function
	Version  time.Time // of its latest change: Redis' time, or a little more; each change has a later one

	unchanged bool // PutJob has found it stored so already
}

// PutOptions are the options of PutJobs. The zero value is useful.
type PutOptions struct {
	// New refuses to replace a job.
	New bool `query:"new"`
	// Was is the version that is replaced. With another one stored, or none, the job is refused.
	// Zero: any.
	Was time.Time `query:"was"`
	// DryRun checks everything and stores nothing.
	DryRun bool `query:"dry_run"`
}

// was is the version that a change expects, as the ledger takes it.
func (o PutOptions) was() string {
	switch {
	case o.New:
		return "0"
	case o.Was.IsZero():
		return ""
	}
	return strconv.FormatInt(o.Was.UnixMilli(), 10)
}

type putIn struct {
	named
	PutOptions
	Job    StoredJob `whole:"yes"`
	unread error
}

// Unread takes the faults of a body of which some settings could not be read.
func (in *putIn) Unread(err error) { in.unread = err }

var rowPutJob = row(&Operation[putIn, StoredJob]{
	Info: Info{Method: "PUT", Path: "jobs/{name}", Role: Operator, Audit: "jobs put", Summary: "store a job that names a handler, or replace a stored one"},
	do:   putOne,
	dry:  func(in putIn) bool { return in.DryRun },
	note: func(in putIn, out StoredJob) Action {
		if out.unchanged {
			return Action{Target: in.Name, Detail: "unchanged"}
		}
		return Action{Target: in.Name, Detail: cmp.Or(out.Schedule, in.Job.Schedule)}
	},
})

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
	return call(ctx, c, rowPutJob, putIn{named: named{j.Name}, PutOptions: o, Job: StoredJob{Job: j}})
}

// putOne stores the job of a request.
func putOne(ctx context.Context, c *conn, in putIn) (StoredJob, error) {
	if in.Job.Name != "" && in.Job.Name != in.Name {
		return StoredJob{}, &InputError{fmt.Sprintf("the body names the job %q, and the path %q", in.Job.Name, in.Name)}
	}
	in.Job.Name = in.Name
	if in.unread != nil {
		in.DryRun = true // to find the other faults
	}
	all, err := putJobs(ctx, c, []jobs.Job{in.Job.Job}, in.PutOptions)
	if in.unread != nil {
		return StoredJob{}, fmt.Errorf("%w: put job %s: %w", ErrRefused, in.Name, errors.Join(in.unread, storecheck.Further(wire.Faults(in.unread), wire.Faults(err))))
	}
	if len(all) == 0 {
		return StoredJob{}, err
	}
	return all[0], err
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

func putJobs(ctx context.Context, c *conn, list []jobs.Job, o PutOptions) (stored []StoredJob, err error) {
	l, err := c.OpenCatalog(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := storecheck.Check(ctx, l, list)
	if err != nil {
		return nil, err
	}
	var changes []catalog.Change
	for _, j := range ready {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			return nil, err
		}
		changes = append(changes, catalog.Change{Job: j.Name, Definition: string(text), Was: o.was()})
		stored = append(stored, StoredJob{Job: j})
	}
	if o.DryRun {
		return stored, nil
	}
	done := 0
	for some := range slices.Chunk(changes, catalog.Page) {
		answers, err := catalog.Apply(ctx, l, some)
		if err != nil {
			return stored[:done], err
		}
		for _, a := range answers {
			if !a.Done && o.New {
				return stored[:done], fmt.Errorf("%w: put job %s: it is there already: %s; leave out --new to replace it", ErrRefused, ready[done].Name, standing(a))
			}
			if !a.Done {
				return stored[:done], fmt.Errorf("%w: put job %s: %s; read it again, and put what you mean", ErrRefused, ready[done].Name, standing(a))
			}
			stored[done].Version, stored[done].unchanged = time.UnixMilli(a.Version).UTC(), a.Same
			done++
		}
	}
	return stored, nil
}

// notePut notes in the audit which jobs were stored, and which one was refused, and returns err.
// Unchanged jobs have no note, except one note where all are unchanged.
func (c *Client) notePut(ctx context.Context, list []jobs.Job, stored []StoredJob, o PutOptions, err error) error {
	name := rowPutJob.Audit
	if o.DryRun || len(list) == 0 {
		return err
	}
	changed := slices.DeleteFunc(slices.Clone(stored), func(s StoredJob) bool { return s.unchanged })
	if len(changed) == 0 && err == nil {
		detail := "unchanged"
		if len(stored) > 1 {
			detail = fmt.Sprintf("unchanged, and %d more", len(stored)-1)
		}
		_ = c.Note(ctx, Action{Name: name, Target: stored[0].Name, Detail: detail}, nil)
	}
	for _, s := range changed {
		_ = c.Note(ctx, Action{Name: name, Target: s.Name, Detail: s.Schedule}, nil)
	}
	if err != nil {
		refused := list[len(stored)]
		return c.Note(ctx, Action{Name: name, Target: refused.Name, Detail: refused.Schedule}, err)
	}
	return nil
}

type storedIn struct {
	Names []string `query:"name"` // only the stored job of this name; once for each
}

var rowStoredJobs = row(&Operation[storedIn, []StoredJob]{
	Info: Info{Method: "GET", Path: "stored-jobs", Role: Viewer, Summary: "the jobs that were stored at run time, by name, with all settings"},
	do: func(ctx context.Context, c *conn, in storedIn) ([]StoredJob, error) {
		return storedJobs(ctx, c, in.Names...)
	},
})

// StoredJobs reads stored jobs by their names, all of them without names. A name without a stored
// job is ErrUnknownJob.
func (c *Client) StoredJobs(ctx context.Context, names ...string) ([]StoredJob, error) {
	return call(ctx, c, rowStoredJobs, storedIn{names})
}

func storedJobs(ctx context.Context, c *conn, names ...string) ([]StoredJob, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	whole := len(names) == 0
	if whole {
		versions, err := catalog.Names(ctx, l)
		if err != nil {
			return nil, err
		}
		for name := range versions {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	found, err := catalog.Jobs(ctx, l, names...)
	if err != nil {
		return nil, err
	}
	all, faults := []StoredJob{}, []error(nil)
	for _, f := range found {
		if f.Definition == "" {
			if !whole { // else it was deleted meanwhile
				faults = append(faults, fmt.Errorf("%w: no job %s is stored", ErrUnknownJob, f.Job))
			}
			continue
		}
		d, err := jobs.ParseDefinition([]byte(f.Definition))
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: stored job %s: %w", ErrUnknownFormat, f.Job, err))
			continue
		}
		all = append(all, StoredJob{Job: d.Job, Version: time.UnixMilli(f.Version).UTC()})
	}
	return all, errors.Join(faults...)
}

// standing names the stored version.
func standing(a catalog.Answer) string {
	if a.Version == 0 {
		return "no such job is stored"
	}
	return "the version of " + FormatTime(time.UnixMilli(a.Version)) + " is stored"
}

// HandlerView is a handler that a node has declared in the last 30 days: a stored job may name it.
type HandlerView struct {
	Name string `json:"name"`
	// Shape is the form of the payloads, as JSON: the name of a type of JSON, {"list": SHAPE},
	// {"map": SHAPE} or {"fields": {NAME: SHAPE}}; "" for any payload.
	Shape string `json:"shape"`
}

var rowHandlers = read("handlers", "the handlers that stored jobs may name", plain(listHandlers))

// ListHandlers lists the handlers that nodes have declared, by name.
func (c *Client) ListHandlers(ctx context.Context) ([]HandlerView, error) {
	return call(ctx, c, rowHandlers, None{})
}

func listHandlers(ctx context.Context, c *conn) ([]HandlerView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	shapes, err := catalog.Handlers(ctx, l)
	if err != nil {
		return nil, err
	}
	views := make([]HandlerView, 0, len(shapes))
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		views = append(views, HandlerView{name, shapes[name]})
	}
	return views, nil
}
