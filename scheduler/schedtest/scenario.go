package schedtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// Scenario is a timetable: a file of events, and below a line --- the history that must result, row
// by row. testdata/scenarios/README.md has the words. Put your own jobs into one:
//
//	schedtest.Scenario{File: "testdata/report.txt", Jobs: []jobs.Job{report}}.Run(t)
//
// with a file such as this:
//
//	# A report whose node dies in the middle is made once more.
//	for 11m
//	nodes 2
//	job report "*/5 * * * *" on_crash=rerun
//	when after-start from=+4m50s crash for=10s
//	---
//	report +5m abandoned (lease lapsed)
//	report +5m succeeded attempt 2 by rerun late 5s
//	report +10m succeeded
//	report next +15m
type Scenario struct {
	File string
	// Jobs are jobs that the file may name. The file overrides their settings, and their functions
	// where it has lines of its own for a job's function. Any other job of the file is made from
	// the file alone.
	Jobs []jobs.Job
	// Seed gives other latencies than the file's; the history must be the same. 0: the file's, or
	// 1.
	Seed uint64
	// Rewrite writes the resulting history below the line, in place of comparing. Read the
	// difference before you keep it.
	Rewrite bool
}

// Run plays the scenario in a bubble of its own. It fails the test when the history differs, when a
// promise was broken, or when a fault of the file never struck.
func (s Scenario) Run(t *testing.T) Result {
	t.Helper()
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseScenario(s.File, string(text), s.Jobs...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Seed != 0 {
		parsed.plan.Seed = s.Seed
	}
	p := parsed.play(t)
	for _, what := range p.broken {
		t.Error(what)
	}
	if s.Rewrite {
		if err := os.WriteFile(s.File, []byte(parsed.rewritten(p.got)), 0o600); err != nil {
			t.Fatal(err)
		}
		return p.result
	}
	if d := diff(parsed.want, p.got, parsed.wantAt, s.File); d != "" {
		t.Errorf("the history is another one; if it is right, set Rewrite:\n%s\n%s", d, p.result)
	}
	return p.result
}

// rewritten is the file with another history.
func (s *timetable) rewritten(got []string) string {
	return s.above + "\n---\n" + strings.Join(got, "\n") + "\n"
}

// play plays a scenario in a bubble of its own.
func (s *timetable) play(t *testing.T) *played {
	t.Helper()
	p := &played{scenario: s, unique: make(map[string]string)}
	plan := s.plan
	plan.acts, plan.last = p.acts(), p.read
	plan.For -= claim.AheadMax // a tick at the end belongs to the time behind it, whatever the delays of its claim
	p.result = Play(t, plan)
	for _, f := range p.result.Findings {
		p.broken = append(p.broken, f.String())
	}
	for _, f := range p.result.Idle {
		p.broken = append(p.broken, fmt.Sprintf("this never struck: %s", f))
	}
	return p
}

// diff compares two histories, ignoring the spacing of words, and shows where they differ; "" when
// they do not.
func diff(want, got []string, at int, file string) string {
	words := func(lines []string) []string {
		var all []string
		for _, line := range lines {
			if w := strings.Join(strings.Fields(line), " "); w != "" {
				all = append(all, w)
			}
		}
		return all
	}
	a, b := words(want), words(got)
	if slices.Equal(a, b) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s:%d: wanted (-) and came (+)\n", file, at)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			fmt.Fprintf(&out, "  %s\n", a[0])
			a, b = a[1:], b[1:]
		case len(a) > 0 && !slices.Contains(b, a[0]):
			fmt.Fprintf(&out, "- %s\n", a[0])
			a = a[1:]
		case len(b) > 0 && !slices.Contains(a, b[0]):
			fmt.Fprintf(&out, "+ %s\n", b[0])
			b = b[1:]
		case len(a) > 0:
			fmt.Fprintf(&out, "- %s\n", a[0])
			a = a[1:]
		default:
			fmt.Fprintf(&out, "+ %s\n", b[0])
			b = b[1:]
		}
	}
	return out.String()
}
