package tool

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
)

// Nothing is sealed where the other side cannot be reached, and no message mentions a seal.
func TestSealChecksTheTargetFirst(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	code, _, words := cmdtest.Call(p.Env, "", "move", "seal", "--to", "redis://"+cmdtest.ClosedPort(t))
	if code != command.ExitUnreachable || strings.Contains(words, "sealing") {
		t.Errorf("exit %d, %s", code, words)
	}
	p.Trigger("yearly", "")
}

// An error of a step names the step, with its advice, and the fault of the failed side.
func TestFailedStepIsNamed(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	gone := cmdtest.ClosedPort(t)
	for step, want := range map[string]struct {
		code  int
		words string
	}{
		"plan":  {command.ExitUnreachable, "--to: move plan: cannot reach Redis at " + gone},
		"abort": {command.ExitRefused, "run `move abort` again: cannot reach Redis at " + gone},
	} {
		code, _, words := cmdtest.Call(p.Env, "", "move", step, "--to", "redis://"+gone)
		if code != want.code || !strings.Contains(words, want.words) || !strings.Contains(words, "--to: move "+step) {
			t.Errorf("%s: exit %d, %s", step, code, words)
		}
	}
}
