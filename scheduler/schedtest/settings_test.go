package schedtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// Every setting of a job is judged, or a plan with it is refused. A judged setting needs a rule of
// the audit.
func TestEverySettingIsKnown(t *testing.T) {
	t.Parallel()
	for _, s := range spec.All() {
		if (s.Judged == "") == (s.Unjudged == "") {
			t.Errorf("%s: Judged %q, Unjudged %q; want one of the two", s.Name, s.Judged, s.Unjudged)
		}
	}
}

// A plan whose job has a setting that cannot be judged is refused, with the setting's name and the
// remedy.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	for _, s := range spec.All() {
		if s.Judged != "" {
			continue
		}
		j := jobs.Job{Name: "odd", Schedule: "* * * * *", Func: patient(0)}
		if s.Kind == spec.JSON {
			j.Payload = []byte("1")
		} else if err := jobs.Settings.Set(&j, s, "1"); err != nil {
			t.Fatal(err)
		}
		err := Plan{Jobs: []jobs.Job{j}}.withDefaults().validate()
		if want := "job odd: " + s.Field + ": " + s.Unjudged; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// A run that is ended because it makes no progress is no finding; a run recorded so without the
// setting is.
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
		"may be without progress for 1m":             func(d *jobs.Definition) { d.StallAfter = time.Minute },
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
