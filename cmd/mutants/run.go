package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	testLimit  = 3 * time.Minute // for the tests of one guard; then they hang
	allLimit   = 5 * time.Minute // for all named tests of a package, on the unchanged module
	buildLimit = 5 * time.Minute // for their build, beside other work
)

// player runs tests on the module at root, unchanged or without a guard.
type player struct {
	root, dir string // dir is for the changed files
	builds    int    // how many are compiled at once by one go command; 0: as many as there are processors
}

// overlay writes the file without the guard, and the list of changed files that `go test -overlay`
// reads. It returns the list's path.
func (p player) overlay(g guard) (string, error) {
	path, changed := filepath.Join(p.root, filepath.FromSlash(g.File)), filepath.Join(p.dir, g.Name+filepath.Ext(g.File))
	src, err := os.ReadFile(path) //nolint:gosec // G304: a file of this module
	if err != nil {
		return "", err
	}
	if src, err = g.mutate(src); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, src, 0o600); err != nil { //nolint:gosec // G703: in the folder that this program made
		return "", err
	}
	return changed + ".json", os.WriteFile(changed+".json", list, 0o600)
}

// outcome is the result of the tests that a pattern names.
type outcome struct {
	passed, failed []string // names, including subtests
	err            error    // why there is no result: no build, no test, a hang, a panic elsewhere
	out            string
}

var (
	verdictLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	panicLine   = regexp.MustCompile(`(?m)^panic: `)
)

// run runs tests on the module, or on the module as an overlay changes it.
func (p player) run(ctx context.Context, t test, overlay string, limit time.Duration, flags ...string) outcome {
	args := []string{"test", "-count=1", "-vet=off", "-v", "-timeout", limit.String(), "-run", t.run}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	args = append(args, flags...)
	if p.builds > 0 {
		args = append(args, fmt.Sprint("-p=", p.builds))
	}
	ctx, cancel := context.WithTimeout(ctx, limit+buildLimit)
	defer cancel()
	dir, pkg := p.module(t.pkg)
	c := exec.CommandContext(ctx, "go", append(args, pkg)...) //nolint:gosec // G204: the tests of the table
	c.Dir = dir
	var out tail
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return read(string(out.text), err)
}

// module returns the directory of a package's module, which may be below root, and the package's
// path from there.
func (p player) module(pkg string) (dir, rel string) {
	dir, rel = filepath.Join(p.root, filepath.FromSlash(pkg)), "."
	for dir != p.root {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir, rel = filepath.Dir(dir), filepath.ToSlash(filepath.Join(filepath.Base(dir), rel))
	}
	return dir, "./" + strings.TrimPrefix(rel, "./")
}

// tail keeps the end of the output: a test without its guard may log for ever.
type tail struct{ text []byte }

const tailMax = 1 << 20

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if len(t.text) > 2*tailMax {
		t.text = append(t.text[:0], t.text[len(t.text)-tailMax:]...)
	}
	return len(p), nil
}

// read parses the output of `go test -v`.
func read(out string, err error) outcome {
	o := outcome{out: out}
	for _, line := range verdictLine.FindAllStringSubmatch(out, -1) {
		switch line[1] {
		case "PASS":
			o.passed = append(o.passed, line[2])
		case "FAIL":
			o.failed = append(o.failed, line[2])
		}
	}
	switch {
	case strings.Contains(out, "panic: test timed out"):
		o.err = errors.New("a test was not done in time")
	case panicLine.MatchString(out):
		o.err = errors.New("a panic: it ends the program before a test could say what is wrong")
	case err != nil && len(o.failed) == 0:
		o.err = fmt.Errorf("no test has failed, but: %w", err)
	case len(o.passed)+len(o.failed) == 0:
		o.err = errors.New("no test was run: the pattern names none, or it was skipped")
	}
	return o
}

// caughtBy is the most exact name of a test that has failed.
func (o outcome) caughtBy() string {
	best := ""
	for _, name := range o.failed {
		if strings.Count(name, "/") > strings.Count(best, "/") || best == "" {
			best = name
		}
	}
	return best
}
