package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// NameList is a list of names. In JSON one name may also stand for a list of one.
type NameList []string

// UnmarshalJSON reads a list, or one name.
func (l *NameList) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*l = NameList{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

// checkUpstreams checks that the jobs which jobs to be stored follow are there, stored or a program's, that no jobs wait for each other,
// and that those which one job follows begin with the same ticks. What else stands in the catalog is not judged anew.
func checkUpstreams(ctx context.Context, l *ledger.Ledger, list []jobs.Job) error {
	reg, known, mine := jobs.NewRegistry(), make(map[string]bool), make(map[string]bool)
	by := make(map[string]string) // who follows a job that is not known yet
	add := func(j jobs.Job) {
		known[j.Name] = true
		delete(by, j.Name)
		_ = reg.Add(jobs.Job{Name: j.Name, Schedule: j.Schedule, TimeZone: j.TimeZone, Except: j.Except, Only: j.Only, StartAt: j.StartAt, EndAt: j.EndAt, Jitter: j.Jitter,
			After: j.After, Func: func(context.Context, *jobs.Run) error { return nil }}) // a fault of its own is found elsewhere
		for _, name := range j.After {
			if !known[name] {
				by[name] = j.Name
			}
		}
	}
	for _, j := range list {
		mine[j.Name] = true
		add(j)
	}
	var faults []error
	for len(by) > 0 {
		found, err := definitionsOf(ctx, l, by)
		if err != nil {
			return err
		}
		for name, follower := range maps.Clone(by) { // add changes it
			d, there := found[name]
			if !there && mine[follower] {
				faults = append(faults, fmt.Errorf("%w: put job %s: %w", ErrRefused, follower,
					&jobs.FieldError{Field: "after", Msg: fmt.Sprintf("there is no job %q, stored or of a program; store that one first", name)}))
			}
			if !there {
				d.Name, d.Schedule = name, "@hourly"
			}
			add(d.Job())
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	if err := reg.Check(); err != nil {
		return fmt.Errorf("%w: put %w", ErrRefused, err)
	}
	return nil
}

// definitionsOf reads the definitions of jobs, as they are stored or, else, registered. What this version cannot read is left out.
func definitionsOf(ctx context.Context, l *ledger.Ledger, of map[string]string) (map[string]jobs.Definition, error) {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	found := make(map[string]jobs.Definition)
	entries, err := l.Named(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, s := range entries {
		if d, err := jobs.ParseDefinition(s.Definition); s.Err == nil && err == nil {
			found[s.Job] = d
		}
	}
	stored, err := l.CatalogJobs(ctx, names...)
	for _, s := range stored {
		if d, err := jobs.ParseDefinition([]byte(s.Definition)); s.Definition != "" && err == nil {
			found[s.Job] = d
		}
	}
	return found, err
}
