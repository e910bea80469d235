package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// Nothing is sealed where the other side cannot be reached, and no message mentions a seal.
func TestSealChecksTheTargetFirst(t *testing.T) {
	t.Parallel()
	p := plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	code, _, words := call(p.env, "", "move", "seal", "--to", "redis://"+closedPort(t))
	if code != exitUnreachable || strings.Contains(words, "sealing") {
		t.Errorf("exit %d, %s", code, words)
	}
	if code, _, words := call(p.env, "", "jobs", "run", "yearly"); code != exitDone {
		t.Errorf("a run after that: exit %d, %s", code, words)
	}
}

// An error of a step names the step, with its advice, and the fault of the failed side.
func TestFailedStepIsNamed(t *testing.T) {
	t.Parallel()
	p := plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	gone := closedPort(t)
	for step, want := range map[string]struct {
		code  int
		words string
	}{
		"plan":  {exitUnreachable, "--to: move plan: cannot reach Redis at " + gone},
		"abort": {exitRefused, "run `move abort` again: cannot reach Redis at " + gone},
	} {
		code, _, words := call(p.env, "", "move", step, "--to", "redis://"+gone)
		if code != want.code || !strings.Contains(words, want.words) || !strings.Contains(words, "--to: move "+step) {
			t.Errorf("%s: exit %d, %s", step, code, words)
		}
	}
}
