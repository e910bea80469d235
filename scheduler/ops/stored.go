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
		return StoredJob{}, fmt.Errorf("%w: put job %s: %w", ErrRefused, in.Name, errors.Join(in.unread, besideUnread(FaultsOf(in.unread), FaultsOf(err))))
	}
	if len(all) == 0 {
		return StoredJob{}, err
	}
	return all[0], err
}

// besideUnread are the faults of a job of which some settings could not be read. A fault at such a
// setting, or whose words have its name, may be about the value that is not there, and is left out.
func besideUnread(unread, found []FaultView) error {
	var faults []error
	for _, f := range found {
		moot := slices.ContainsFunc(unread, func(u FaultView) bool {
			setting, _, _ := strings.Cut(u.Field, "[")
			_, known := spec.Named(setting)
			part := strings.HasPrefix(f.Field, setting+".") || strings.HasPrefix(f.Field, setting+"[")
			return u.Field == "job" || f.Field == setting || part || known && strings.Contains(f.Text, setting)
		})
		if !moot {
			faults = append(faults, &jobs.FieldError{Field: f.Field, Msg: f.Text})
		}
	}
	return errors.Join(faults...)
}

func putJobs(ctx context.Context, c *conn, list []jobs.Job, o PutOptions) (stored []StoredJob, err error) {
	l, err := c.openCatalog(ctx)
	if err != nil {
		return nil, err
	}
	ready, err := checkStored(ctx, l, list)
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

// openCatalog opens the ledger for a change of the catalog. It returns ErrClosed when a move has
// closed the namespace.
func (c *conn) openCatalog(ctx context.Context) (*ledger.Ledger, error) {
	closed, err := closedWords(ctx, c)
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
func checkStored(ctx context.Context, l *ledger.Ledger, list []jobs.Job) ([]jobs.Job, error) {
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

func storedJobs(ctx context.Context, c *conn, names ...string) ([]StoredJob, error) {
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

// standing names the stored version.
func standing(a ledger.CatalogAnswer) string {
	if a.Version == 0 {
		return "no such job is stored"
	}
	return "the version of " + FormatTime(time.UnixMilli(a.Version)) + " is stored"
}
