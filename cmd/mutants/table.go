package main

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed guards.txt
var guardsText string

// test must fail without a guard: a package, as the go tool takes it, and a pattern for -run.
type test struct{ pkg, run string }

func (t test) String() string { return t.pkg + " " + t.run }

// entry is one line of the table.
type entry struct {
	guard string
	test  test
}

// parseTable reads lines of guard, package and pattern. A # begins a comment.
func parseTable(text string) ([]entry, error) {
	var all []entry
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case len(words) != 3:
			return nil, fmt.Errorf("guards.txt:%d: want a guard, a package and a -run pattern, got %q", i+1, strings.TrimSpace(line))
		}
		e := entry{words[0], test{words[1], words[2]}}
		if _, err := regexp.Compile(e.test.run); err != nil {
			return nil, fmt.Errorf("guards.txt:%d: %w", i+1, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// guard is a mark and the tests that are to catch its mutant.
type guard struct {
	mark
	tests []test
}

// testsMax is how many tests a guard may name: one, or two that show different sides of the guard.
const testsMax = 2

// match puts marks and table together. The error names everything that does not fit.
func match(found []mark, entries []entry) ([]guard, error) {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	tests := make(map[string][]test)
	for _, e := range entries {
		tests[e.guard] = append(tests[e.guard], e.test)
	}
	var all []guard
	places, kept := make(map[string]string), make(map[string]bool)
	for _, m := range found {
		if other := places[m.Name]; other != "" {
			fail("%s: guard %s stands at %s too; names are unique", m.place(), m.Name, other)
		}
		places[m.Name], kept[m.Promise] = m.place(), true
		if n := len(tests[m.Name]); n == 0 || n > testsMax {
			fail("%s: guard %s has %d tests in cmd/mutants/guards.txt; name one or two that fail without it", m.place(), m.Name, n)
		}
		all = append(all, guard{mark: m, tests: tests[m.Name]})
	}
	for _, e := range entries {
		if places[e.guard] == "" {
			fail("guards.txt: no line of the source is marked as guard %s", e.guard)
			places[e.guard] = "?"
		}
	}
	for _, p := range promises {
		if !kept[p] {
			fail("no guard is marked for promise %s", p)
		}
	}
	slices.SortStableFunc(all, func(a, b guard) int { return strings.Compare(a.Promise, b.Promise) })
	return all, errors.Join(wrong...)
}

// load finds the guards of the module at root.
func load(root string) ([]guard, error) {
	found, err := findMarks(root)
	if err != nil {
		return nil, err
	}
	entries, err := parseTable(guardsText)
	if err != nil {
		return nil, err
	}
	return match(found, entries)
}
