// Package storecheck checks jobs that are to be stored in a namespace at run time: their settings,
// and whether they fit the jobs, handlers and limits that are there.
package storecheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// Check checks jobs that are to be stored, and returns them with their defaults. The error joins
// all faults, of each wrong setting a *jobs.FieldError.
func Check(ctx context.Context, l *ledger.Ledger, list []jobs.Job) ([]jobs.Job, error) {
	handlers, err := catalog.Handlers(ctx, l)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(list))
	var faults []error
	list = slices.Clone(list)
	for i, j := range list {
		list[i] = j.WithDefaults(jobs.Defaults{})
		if err := storable(list[i], handlers); err != nil {
			faults = append(faults, fmt.Errorf("%w: put job %s: %w", ledger.ErrRefused, j.Name, err))
		}
		if seen[j.Name] {
			faults = append(faults, fmt.Errorf("%w: put job %s: it stands there twice", ledger.ErrRefused, j.Name))
		}
		seen[j.Name] = true
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	if err := errors.Join(checkLimits(ctx, l, list), checkUpstreams(ctx, l, list)); err != nil {
		return nil, err
	}
	entries, err := query.Named(ctx, l, slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return nil, err
	}
	for _, s := range entries {
		if d, err := jobs.ParseDefinition(s.Definition); s.Err == nil && err == nil && d.Stored == 0 {
			faults = append(faults, fmt.Errorf("%w: put job %s: a program has registered a job of that name; take another name", ledger.ErrRefused, s.Job))
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
	for _, f := range wire.Faults(checked.Validate()) {
		bad(f.Field, f.Msg)
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

// Further are the other faults of a job of which some settings could not be read. A fault at such a
// setting, or whose words have its name, may be about the value that is not there, and is left out.
func Further(unread, found []*jobs.FieldError) error {
	var faults []error
	for _, f := range found {
		moot := slices.ContainsFunc(unread, func(u *jobs.FieldError) bool {
			setting, _, _ := strings.Cut(u.Field, "[")
			_, known := spec.Named(setting)
			part := strings.HasPrefix(f.Field, setting+".") || strings.HasPrefix(f.Field, setting+"[")
			return u.Field == "job" || f.Field == setting || part || known && strings.Contains(f.Msg, setting)
		})
		if !moot {
			faults = append(faults, &jobs.FieldError{Field: f.Field, Msg: f.Msg})
		}
	}
	return errors.Join(faults...)
}
