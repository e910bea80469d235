package docs_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// checks are the house rules that a machine can hold. Each returns one line for
// each fault it finds.
var checks = map[string]func(*tree) []string{
	"arrows":           checkArrows,
	"package comments": checkPackageComments,
	"links":            checkLinks,
	"decisions":        checkDecisions,
	"no replace":       checkNoReplace,
	"file length":      checkFileLength,
	"doc comments":     checkDocComments,
	"race detector":    checkRaceTags,
	"top level":        checkTopLevel,
	"test names":       checkTestNames,
	"reasons":          checkReasons,
}

// TestRepository holds this repository to its own documents.
func TestRepository(t *testing.T) {
	tree, err := loadTree(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			for _, problem := range check(tree) {
				t.Error(problem)
			}
		})
	}
}

// TestChecks breaks each rule in a small tree, and wants the check to report it.
func TestChecks(t *testing.T) {
	const arrows = "## Map\n\n```arrows\na: one\nb: two\n    a\nc: (later)\n```\n"
	for _, tt := range []struct{ check, file, text, want string }{
		{"arrows", "a/a.go", "package a\n\nimport _ \"m/b\"\n", "a/a.go imports b: no arrow a -> b"},
		{"arrows", "b/b_test.go", "package b_test\n\nimport _ \"m/c\"\n", "b/b_test.go imports c"},
		{"arrows", "d/d.go", "package d\n", "do not name package d"},
		{"arrows", "c/c.go", "package c\n", "c is marked (later) but exists"},
		{"arrows", architecture, arrows + "```arrows\n", "b does not exist"},
		{"arrows", architecture, strings.ReplaceAll(arrows, "a: one\n", "a: one\n    b\n"), "a -> b goes up"},
		{"arrows", architecture, "", "no block of arrows"},
		{"package comments", "a/a.go", "package a\n", "a: 0 package comments"},
		{"links", "README.md", "[x](docs/nowhere.md)\n", "link docs/nowhere.md: no such file"},
		{"links", "README.md", "[x](docs/architecture.md#other) `[y](z)`\n", "link docs/architecture.md#other: no such heading"},
		{"links", "README.md", "[x](../elsewhere)\n", "not a path inside"},
		{"decisions", "docs/decisions/0001-a.md", "# 0001: a\n", "no row of 0001-a.md: add '| question | answer | [0001](0001-a.md) |'"},
		{"decisions", "docs/decisions/0001-a.md", "# a\n", "the first line must be '# 0001: '"},
		{"decisions", "docs/decisions/later.md", "# 0001: a\n", "name the file NNNN-the-decision.md"},
		{"decisions", decisionIndex, "| q | a | [0001](0001-a.md) |\n", "row 0001 links 0001-a.md: no such record"},
		{"no replace", "go.mod", "module m\n\nreplace m/x => ../x\n", "replace is not for a library"},
		{"file length", "a/a.go", "package a\n" + strings.Repeat("\n", maxLines), "a/a.go: 301 lines, at most 300"},
		{"doc comments", "a/a.go", "package a\n\ntype T struct{}\n\nfunc (*T) F() {}\n", "a/a.go: T.F has no doc comment"},
		{"top level", "internal/a/a.go", "package a\n", "internal/a/a.go: no Go code belongs below internal"},
		{"test names", "README.md", "`TestOther`, `go test -run 'TestA|TestSlo'`\n", "README.md: TestA: no such test"},
		{"reasons", "scheduler/internal/ledger/claim.go", "package claim\n\nconst ReasonA = \"a word\"\n", "no `a word`"},
		{"race detector", "a/a_test.go", "//go:build !race\n\npackage a\n\nfunc TestSlow() {}\n", "a/a_test.go: is left out under the race detector"},
	} {
		root := fstest.MapFS{}
		for name, text := range map[string]string{
			"go.mod": "module m\n", "README.md": "[map](docs/architecture.md#map)\n", architecture: arrows,
			"Makefile": "WITHOUT_RACE := 'TestOther'\n\nwithout-race: x\n\tgo test -run $(WITHOUT_RACE) ./a\n",
			tt.file:    tt.text,
		} {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		tree, err := loadTree(root)
		if err != nil {
			t.Fatal(err)
		}
		if problems := strings.Join(checks[tt.check](tree), "\n"); !strings.Contains(problems, tt.want) {
			t.Errorf("%s, %s: want a problem with %q, got:\n%s", tt.check, tt.file, tt.want, problems)
		}
	}
}
