package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// Nothing is sealed where the other side cannot be reached, and nothing is said of a seal.
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
