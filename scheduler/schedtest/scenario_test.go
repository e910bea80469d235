package schedtest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

var (
	rewrite      = flag.Bool("rewrite", false, "write what came of each scenario below its line")
	scenarioSeed = flag.Uint64("scenario.seed", 0, "play the scenarios with this seed instead of their own: other latencies, the same histories")
)

const scenarios = "testdata/scenarios"

// TestScenarios plays every file of testdata/scenarios and compares the history that comes of it, line by
// line. go test -run TestScenarios/overlap/queue -v tells the story of one.
func TestScenarios(t *testing.T) {
	files := scenarioFiles(t)
	if len(files) < 70 {
		t.Errorf("%d scenarios", len(files))
	}
	for i, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), scenarios+"/"), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseScenario(file, string(text))
			if err != nil {
				t.Fatal(err)
			}
			p := s.playOn(t)
			for _, what := range p.broken {
				t.Error(what)
			}
			if i%10 == 0 { // the same scenario gives the same history
				if again := s.playOn(t); again.result.Digest != p.result.Digest || !slices.Equal(again.got, p.got) {
					t.Errorf("played twice it came out differently:\n%s", diff(p.got, again.got, 1, file))
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.rewritten(p.got)), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := diff(s.want, p.got, s.wantAt, file); d != "" {
				t.Errorf("the history is another one; if it is right, rewrite it with -rewrite:\n%s", d)
				t.Logf("%s", p.result)
			}
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(scenarios, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txt" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rewritten is the file with another history.
func (s *scenario) rewritten(got []string) string {
	return s.above + "\n---\n" + strings.Join(got, "\n") + "\n"
}

// playOn plays a scenario in a bubble of its own.
func (s *scenario) playOn(t *testing.T) *played {
	t.Helper()
	p := &played{scenario: s, unique: make(map[string]string)}
	plan := s.plan
	if *scenarioSeed != 0 {
		plan.Seed = *scenarioSeed
	}
	plan.acts, plan.last = p.acts(), p.read
	p.result = Play(t, plan)
	for _, f := range p.result.Findings {
		p.broken = append(p.broken, f.String())
	}
	p.broken = append(p.broken, once(p.result.Writes, plan.beside())...)
	for _, f := range p.result.Idle {
		p.broken = append(p.broken, fmt.Sprintf("this never struck: %s", f))
	}
	return p
}

// once checks what the sink saw: an attempt of a tick is one run, its tries come one after another, and a later
// run of a fence has the greater token.
func once(writes []verify.Write, beside map[string]bool) []string {
	var broken []string
	runs, tokens, going := make(map[string]string), make(map[string]verify.Write), make(map[string]bool)
	for _, w := range writes {
		if w.Phase == verify.End {
			delete(going, w.Run)
			continue
		}
		if going[w.Run] {
			broken = append(broken, fmt.Sprintf("run %s was begun while it was going", w.Run))
		}
		going[w.Run] = true
		attempt := fmt.Sprintf("%s %s attempt %d", w.Job, w.Tick.Format("15:04:05.000"), w.Attempt)
		fence := w.Job
		if w.Shards > 1 {
			attempt, fence = fmt.Sprint(attempt, " shard ", w.Shard), fmt.Sprint(fence, " shard ", w.Shard)
		}
		if before := runs[attempt]; before != "" && before != w.Run && !strings.HasPrefix(w.Run, "hand-") {
			broken = append(broken, fmt.Sprintf("%s ran twice, as %s and as %s", attempt, before, w.Run))
		}
		runs[attempt] = w.Run
		if beside[w.Job] {
			fence += w.Tick.String()
		}
		if before, there := tokens[fence]; there && before.Run != w.Run && before.Token >= w.Token {
			broken = append(broken, fmt.Sprintf("run %s has token %d, and %s before it %d", w.Run, w.Token, before.Run, before.Token))
		}
		tokens[fence] = w
	}
	return broken
}

// diff compares two histories, blind to how the words are spaced, and shows where they part; "" when they do not.
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
