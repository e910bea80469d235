package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

// Run returns all faults of the jobs at once.
func TestRunRefuses(t *testing.T) {
	nothing := func(context.Context, *jobs.Run) error { return nil }
	good := jobs.Job{Name: "good", Schedule: "@hourly", Func: nothing}
	const nobody = "redis://127.0.0.1:1"
	for name, c := range map[string]struct {
		url  string
		jobs []jobs.Job
		want []string
	}{
		"no job":       {nobody, nil, []string{"Run needs a job", "New and Node.Add"}},
		"a URL":        {"localhost:6379", []jobs.Job{good}, []string{"scheduler: the Redis URL has no scheme"}},
		"two jobs":     {nobody, []jobs.Job{{Name: "a", Schedule: "never", Func: nothing}, good, {Name: "b", Schedule: "@hourly"}}, []string{`job "a": schedule`, `job "b": func`}},
		"a name twice": {nobody, []jobs.Job{good, good}, []string{`job "good": ` + jobs.ErrDuplicate.Error()}},
		"no Redis":     {nobody, []jobs.Job{good}, []string{locking.ErrUnreachable.Error(), "cannot reach Redis at 127.0.0.1:1", "start it, or correct its address, or wait for it with Config.WaitForRedis"}},
	} {
		err := scheduler.Run(t.Context(), c.url, c.jobs...)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
		}
		if errors.Is(err, locking.ErrUnreachable) != (name == "no Redis") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
