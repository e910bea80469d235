package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marksOf makes a mark for each promise, named after it.
func marksOf(t *testing.T, more ...mark) []mark {
	t.Helper()
	var all []mark
	for _, p := range promises {
		all = append(all, mark{Name: strings.ToLower(p), Promise: p, File: "a.go"})
	}
	return append(all, more...)
}

const goodTable = "# a comment\np1 ./a TestA\np1 ./b TestB # another\n\np2 ./a TestA\np3 ./a T\np4 ./a T\np5 ./a T\np6 ./a T\np7 ./a T\np8 ./a T\n"

func TestMatch(t *testing.T) {
	entries, err := parseTable(goodTable)
	if err != nil {
		t.Fatal(err)
	}
	all, err := match(marksOf(t), entries)
	if err != nil || len(all) != 8 || len(all[0].tests) != 2 || all[0].tests[1] != (test{"./b", "TestB"}) {
		t.Fatalf("%v, %v", all, err)
	}
	for want, found := range map[string][]mark{
		"has 0 tests":        marksOf(t, mark{Name: "new", Promise: "P1", File: "b.go"}),
		"names are unique":   marksOf(t, mark{Name: "p1", Promise: "P1", File: "b.go"}),
		"marked as guard p8": marksOf(t)[:7],
		"for promise P8":     marksOf(t)[:7],
	} {
		if _, err := match(found, entries); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
	for text, want := range map[string]string{"p1 ./a": "guards.txt:1", "\np1 ./a T(": "guards.txt:2"} {
		if _, err := parseTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error that says %q, got %v", text, want, err)
		}
	}
}

func TestChoose(t *testing.T) {
	entries, _ := parseTable(goodTable)
	all, err := match(marksOf(t), entries)
	if err != nil {
		t.Fatal(err)
	}
	names := func(o options) (s string) {
		some, err := o.choose(append([]guard(nil), all...))
		if err != nil {
			return err.Error()
		}
		for _, g := range some {
			s += g.Name + " "
		}
		return s
	}
	if got := names(options{only: "p[13]"}); got != "p1 p3 " {
		t.Errorf("-only: %s", got)
	}
	if got := names(options{only: "nothing"}); !strings.Contains(got, "no guard matches") {
		t.Errorf("-only nothing: %s", got)
	}
}

func TestRead(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		name, out string
		err       error
		caught    string // "": by no test
		wrong     string // "": the outcome counts
	}{
		{"a failure", "=== RUN   TestA\n    --- FAIL: TestA/b/c (0.1s)\n--- FAIL: TestA (0.1s)\nFAIL\n", failed, "TestA/b/c", ""},
		{"passing", "--- PASS: TestA (0.1s)\nok\n", nil, "", ""},
		{"no build", "./a.go:3:2: undefined: x\nFAIL ./a [build failed]\n", failed, "", "no test has failed"},
		{"a hang", "--- FAIL: TestA (1s)\npanic: test timed out after 1m0s\n", failed, "TestA", "not done in time"},
		{"no test", "testing: warning: no tests to run\nok\n", nil, "", "no test was run"},
		{"skipped", "--- SKIP: TestA (0s)\nok\n", nil, "", "no test was run"},
	} {
		o := read(c.out, c.err)
		if o.caughtBy() != c.caught || (o.err == nil) != (c.wrong == "") || c.wrong != "" && !strings.Contains(o.err.Error(), c.wrong) {
			t.Errorf("%s: caught by %q, %v", c.name, o.caughtBy(), o.err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"TestA", "TestA", true}, {"TestA", "TestAll/one", true}, {"TestA$", "TestAll", false},
		{"TestA/two", "TestA", false}, {"TestA/two", "TestA/two", true}, {"TestA/^two$", "TestA/two-more", false},
	} {
		if got := names(c.pattern, c.name); got != c.want {
			t.Errorf("%s chooses %s: %v", c.pattern, c.name, got)
		}
	}
}

// TestGuards holds marks and table against each other: a guard without a test is seen at once.
func TestGuards(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 || len(all) > 180 { // each costs a build and a test, some ten seconds of make prove
		t.Errorf("there are %d guards; keep 50 to 180, one for each rule that a promise rests on", len(all))
	}
	for _, g := range all {
		src, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.mutate(src); err != nil {
			t.Error(err)
		}
	}
}

// A guard in a module of its own is tested there.
func TestGuardsOfOtherModules(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string][2]string{
		"./locking/zklock": {filepath.Join(root, "locking", "zklock"), "./."}, "./locking/redislock": {root, "./locking/redislock"},
		"./locking/fence/sqltest": {filepath.Join(root, "locking", "fence", "sqltest"), "./."},
	} {
		if dir, inside := (player{root: root}).module(pkg); dir != want[0] || inside != want[1] {
			t.Errorf("%s: %s in %s, want %v", pkg, inside, dir, want)
		}
	}
}
