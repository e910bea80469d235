package docs_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

var (
	// raceList is the Makefile's list of tests to run once more without the race detector.
	raceList = regexp.MustCompile(`(?m)^WITHOUT_RACE := '(.*)'$`)
	// raceRuns are the `go test` lines of the target that runs them.
	raceRuns = regexp.MustCompile(`(?m)^without-race:.*\n((?:\t.*\n)+)`)
	// variable is a Makefile's simple variable.
	variable = regexp.MustCompile(`(?m)^([A-Z_]+) := (.*)$`)
)

// checkWithoutRace finds tests that the race detector leaves out and that nothing runs without it.
func checkWithoutRace(t *tree) (problems []string) {
	text, err := fs.ReadFile(t.root, "Makefile")
	if err != nil {
		return []string{err.Error()}
	}
	list, runs := raceList.FindSubmatch(text), raceRuns.FindSubmatch(text)
	if list == nil || runs == nil {
		return []string{"Makefile: no list WITHOUT_RACE, or no target without-race"}
	}
	listed, err := regexp.Compile(strings.ReplaceAll(string(list[1]), "$$", "$"))
	if err != nil {
		return []string{"Makefile: WITHOUT_RACE: " + err.Error()}
	}
	lines := string(runs[1])
	for _, v := range variable.FindAllSubmatch(text, -1) {
		lines = strings.ReplaceAll(lines, "$("+string(v[1])+")", string(v[2]))
	}
	for _, f := range t.files {
		for _, name := range raceLess(f) {
			if !runsWithoutRace(lines, f.dir, listed.MatchString(name)) {
				problems = append(problems, fmt.Sprintf("%s: %s runs nowhere: no line of the Makefile's without-race has it and its package", f.path, name))
			}
		}
	}
	return problems
}

// raceLess lists the tests of a file that is not built with the race detector.
func raceLess(f goFile) (names []string) {
	if !f.test || !slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() < f.ast.Package && slices.ContainsFunc(c.List, func(l *ast.Comment) bool { return l.Text == "//go:build !race" })
	}) {
		return nil
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// runsWithoutRace looks for a line that runs a package whole, or those of its tests that are listed.
func runsWithoutRace(lines, dir string, listed bool) bool {
	for line := range strings.Lines(lines) {
		if slices.Contains(strings.Fields(line), "./"+dir) && (listed || !strings.Contains(line, " -run ")) {
			return true
		}
	}
	return false
}
