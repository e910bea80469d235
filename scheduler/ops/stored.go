package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// StoredJob is a job that is stored in the namespace, and not in a program. Its JSON has the settings that have a value, and the version.
type StoredJob struct {
	jobs.Job           // without a function
	Version  time.Time // of its latest change: Redis' time, or a little more; each change has a later one
}

// PutOptions say how PutJobs stores jobs. The zero value is useful.
type PutOptions struct {
	// New says that no job may be replaced.
	New bool
	// Was is the version that is replaced. With another one stored, or none, the job is refused. Zero: any.
	Was time.Time
	// DryRun says that everything is checked and nothing is stored.
	DryRun bool
}

// PutJob stores a job that names a handler, or replaces a stored one, and returns it with its version. Nodes that have the
// handler (jobs.Registry.Handle) learn of it within a second, and run it as a job of their own; where none lives, its ticks
// wait, as those of any job without a node. Its history and cursor go on when it is replaced. A job that is stored already with these
// settings keeps its version, and nothing changes.
//
// It returns ErrRefused with a *jobs.FieldError for each setting that is wrong, for a handler that no node has declared in
// this namespace, for a payload that does not fit the type of a handler of jobs.HandleTyped, for a job with a function, for a limit
// other than that of its group's stored jobs (of the 10,000 jobs that were changed the longest ago), for a name that a program's job has,
// and for another version than o says. Nothing is stored then.
func (c *Client) PutJob(ctx context.Context, j jobs.Job, o PutOptions) (StoredJob, error) {
	all, err := c.PutJobs(ctx, []jobs.Job{j}, o)
	if len(all) == 0 {
		return StoredJob{}, err
	}
	return all[0], err
}

// PutJobs is PutJob for many jobs. All are checked before any is stored. Then they are stored in steps of some hundreds:
// after an error beside stored jobs, those are stored.
func (c *Client) PutJobs(ctx context.Context, list []jobs.Job, o PutOptions) (stored []StoredJob, err error) {
	same := make(map[string]bool)
	defer func() {
		switch {
		case o.DryRun:
		case len(stored) == 0 && len(list) > 0:
			c.noted(ctx, &err, Action{Name: "jobs put", Target: list[0].Name, Detail: list[0].Schedule})
		default:
			c.notePut(ctx, stored, same)
		}
	}()
	l, err := c.openCatalog(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := c.checkStored(ctx, l, list)
	if err != nil {
		return nil, err
	}
	var changes []ledger.CatalogChange
	for _, j := range ready {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			return nil, err
		}
		changes = append(changes, ledger.CatalogChange{Job: j.Name, Definition: string(text), Was: o.was()})
		stored = append(stored, StoredJob{Job: j})
	}
	if o.DryRun {
		return stored, nil
	}
	done := 0
	for some := range slices.Chunk(changes, ledger.CatalogPage) {
		answers, err := l.ChangeCatalog(ctx, some)
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
			stored[done].Version, same[ready[done].Name] = time.UnixMilli(a.Version).UTC(), a.Same
			done++
		}
	}
	return stored, nil
}

// notePut notes in the audit which jobs were stored. Of those that were stored so before there is no note, but one where all were.
func (c *Client) notePut(ctx context.Context, stored []StoredJob, same map[string]bool) {
	changed := slices.DeleteFunc(slices.Clone(stored), func(s StoredJob) bool { return same[s.Name] })
	if len(changed) == 0 && len(stored) > 0 {
		detail := "unchanged"
		if len(stored) > 1 {
			detail = fmt.Sprintf("unchanged, and %d more", len(stored)-1)
		}
		c.noted(ctx, new(error), Action{Name: "jobs put", Target: stored[0].Name, Detail: detail})
	}
	for _, s := range changed {
		c.noted(ctx, new(error), Action{Name: "jobs put", Target: s.Name, Detail: s.Schedule})
	}
}

// openCatalog opens the ledger for a change of the catalog. It returns ErrClosed when a move has closed the namespace.
func (c *Client) openCatalog(ctx context.Context) (*ledger.Ledger, error) {
	closed, err := c.Closed(ctx)
	if err == nil && closed != "" {
		err = fmt.Errorf("%w: %s", ErrClosed, closed)
	}
	if err != nil {
		return nil, err
	}
	return c.open(ctx)
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

// checkStored checks jobs, and returns them with their defaults.
func (c *Client) checkStored(ctx context.Context, l *ledger.Ledger, list []jobs.Job) ([]jobs.Job, error) {
	handlers, err := l.Handlers(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(list))
	var faults []error
	list = slices.Clone(list)
	for i, j := range list {
		list[i] = j.WithDefaults(jobs.Defaults{})
		if err := storable(list[i], handlers); err != nil {
			faults = append(faults, fmt.Errorf("%w: put job %s: %w", ErrRefused, j.Name, err))
		}
		if seen[j.Name] {
			faults = append(faults, fmt.Errorf("%w: put job %s: it stands there twice", ErrRefused, j.Name))
		}
		seen[j.Name] = true
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	if err := errors.Join(checkLimits(ctx, l, list), checkUpstreams(ctx, l, list)); err != nil {
		return nil, err
	}
	entries, err := l.Named(ctx, slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return nil, err
	}
	for _, s := range entries {
		if d, err := jobs.ParseDefinition(s.Definition); s.Err == nil && err == nil && d.Stored == 0 {
			faults = append(faults, fmt.Errorf("%w: put job %s: a program has registered a job of that name; take another name", ErrRefused, s.Job))
		}
	}
	return list, errors.Join(faults...)
}

// storable checks one job, and reports all faults of its settings.
func storable(j jobs.Job, handlers map[string]string) error {
	var faults []error
	at := make(map[string]bool)
	bad := func(field, msg string) {
		if !at[field] {
			at[field], faults = true, append(faults, &jobs.FieldError{Field: field, Msg: msg})
		}
	}
	checked := j
	checked.Func = func(context.Context, *jobs.Run) error { return nil } // the nodes have it
	if j.Handler == "" {
		bad("handler", "is missing; a stored job names the handler that its runs call")
		checked.Handler = "handler" // the settings that go with one are not to blame
	}
	if j.Func != nil {
		bad("func", fmt.Sprintf("cannot be stored; leave it out, the nodes call the function of handler %q", j.Handler))
	}
	noCalendars("except", j.Except, bad)
	noCalendars("only", j.Only, bad)
	for _, f := range FaultsOf(checked.Validate()) {
		bad(f.Field, f.Text)
	}
	switch shape, known := handlers[j.Handler]; {
	case at["handler"]:
	case !known:
		others := "no node has declared any in this namespace"
		if names := slices.Sorted(maps.Keys(handlers)); len(names) > 0 {
			others = "declared are " + strings.Join(names[:min(20, len(names))], ", ")
		}
		bad("handler", fmt.Sprintf("no node has declared a handler %q; %s", j.Handler, others))
	case !at["payload"]:
		faults = append(faults, jobs.CheckPayload(shape, j.Payload))
	}
	return errors.Join(faults...)
}

// noCalendars refuses names in a list of days.
func noCalendars(field string, days []string, bad func(field, msg string)) {
	for i, text := range days {
		if text != "" && (text[0] < '0' || text[0] > '9') {
			bad(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is not a date such as 2026-12-24; a stored job cannot name the calendars of config.yaml", spec.Clip(text)))
		}
	}
}

// StoredJobs reads stored jobs by their names, all of them without names. A name without a stored job is ErrUnknownJob.
func (c *Client) StoredJobs(ctx context.Context, names ...string) ([]StoredJob, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	whole := len(names) == 0
	if whole {
		versions, err := l.CatalogNames(ctx)
		if err != nil {
			return nil, err
		}
		for name := range versions {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	found, err := l.CatalogJobs(ctx, names...)
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

// standing says which version is stored.
func standing(a ledger.CatalogAnswer) string {
	if a.Version == 0 {
		return "no such job is stored"
	}
	return "the version of " + Stamp(time.UnixMilli(a.Version)).String() + " is stored"
}
