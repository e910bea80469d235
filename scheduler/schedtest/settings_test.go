package schedtest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// settingsOf lists the fields of a struct; those of a struct of the same package by their path.
func settingsOf(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == of.PkgPath() {
			for _, name := range settingsOf(f.Type) {
				names = append(names, f.Name+"."+name)
			}
			continue
		}
		names = append(names, f.Name)
	}
	return names
}

// Every setting of a job is judged, or a plan that has it is refused. A new field of jobs.Job needs a line in one of the two lists, and
// in the first one a rule of the audit that knows it.
func TestEverySettingIsKnown(t *testing.T) {
	t.Parallel()
	known := slices.Sorted(maps.Keys(judgedSettings))
	known = append(known, slices.Sorted(maps.Keys(refusedSettings))...)
	fields := settingsOf(reflect.TypeFor[jobs.Job]())
	for _, name := range fields {
		if !slices.Contains(known, name) {
			t.Errorf("jobs.Job.%s is neither in judgedSettings nor in refusedSettings", name)
		}
	}
	for i, name := range known {
		if !slices.Contains(fields, name) || slices.Contains(known[:i], name) {
			t.Errorf("%q is no setting of a job, or stands in both lists", name)
		}
	}
}

// A plan whose job has a setting that cannot be judged is refused, with the setting's name and what to do.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	for name, why := range refusedSettings {
		j := jobs.Job{Name: "odd", Schedule: "* * * * *", Func: patient(0)}
		switch v := settingOf(reflect.ValueOf(&j).Elem(), name); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int:
			v.SetInt(1)
		default:
			v.SetBytes([]byte("1"))
		}
		err := Plan{Jobs: []jobs.Job{j}}.withDefaults().validate()
		if want := "job odd: " + name + ": " + why; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// A run that is ended because it makes no progress is as it should be, and one that says so without the setting is not.
func TestStalledIsJudged(t *testing.T) {
	waits := func(ctx context.Context, _ *jobs.Run) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	j := jobs.Job{Name: "stuck", Schedule: "*/5 * * * * *", TTL: 3 * second, Func: waits, StallAfter: 2 * second, OnStall: jobs.OnStallCancel}
	r := Run(t, Plan{Seed: 3, Jobs: []jobs.Job{j}, For: 20 * second})
	if r.Seen["recorded: cancelled (stalled)"] == 0 {
		t.Fatalf("no run stalled: %v", r.Seen)
	}
	for what, change := range map[string]func(*jobs.Definition){
		"the job does not end runs without progress": func(d *jobs.Definition) { d.OnStall = jobs.OnStallTell },
		"may be without progress for 1m":             func(d *jobs.Definition) { d.StallAfter = time.Minute.Milliseconds() },
	} {
		c := r.evidence
		c.Jobs = slices.Clone(c.Jobs)
		c.Jobs[0].Versions = slices.Clone(c.Jobs[0].Versions)
		for i := range c.Jobs[0].Versions {
			change(&c.Jobs[0].Versions[i].Definition)
		}
		found := audit.Check(c).Findings
		if !slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Kind == audit.KindUntrue && strings.Contains(f.What, what) }) {
			t.Errorf("%s: found %v", what, found)
		}
	}
}
