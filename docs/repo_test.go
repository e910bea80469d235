package docs_test

import (
	"io/fs"
	"maps"
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
	"no replace":       checkNoReplace,
	"file length":      checkFileLength,
	"goroutines":       checkGoroutines,
	"doc comments":     checkDocComments,
	"without race":     checkWithoutRace,
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

// goodTree is a small repository that keeps every rule.
func goodTree() fstest.MapFS {
	return files(map[string]string{
		"go.mod":    "module example.org/m\n\ngo 1.26\n\nrequire example.org/other v1.0.0 // replaces nothing\n",
		"README.md": "# M\n\nSee [the map](docs/architecture.md#the-map-1 \"map\"), [web](https://example.org/x) and\n[code](a/).\n\n```\n[not a link](nowhere.md)\n```\n",
		"docs/architecture.md": "# Architecture\n\n## The map\n\n## The `map`\n\n```arrows\na        ->        # words\na/sub    -> a      # below\na/none   -> a      # (later) not built\nkit      -> library\nlocking/redistest -> # a kit\ncmd/*    -> anything\ndocs     ->\n```\n\n" +
			"## Goroutines\n\n| name | owner | started by | ends when |\n| --- | --- | --- | --- |\n| beat | T | `a/a.go:T.Run` | Run returns |\n| tide | T | `a/a.go:T.Ebb` (later) | never |\n\n## End\n\n[up](#the-map) [ref]\n\n[ref]: ../a/a.go\n",
		"docs/doc.go":                  "// Package docs is text.\npackage docs\n",
		"a/a.go":                       "// Package a is good.\npackage a\n\n// T is a type.\ntype T struct{}\n\n// Run runs.\nfunc (t *T) Run() { go func() {}() }\n\n// The limits.\nconst (\n\tLow = 1\n\tHigh = 2\n)\n\nvar X = 1 // X marks the spot.\n",
		"a/a_linux.go":                 "//go:build linux\npackage a\n\ntype hidden int\n\nfunc (hidden) Exported() {}\n",
		"a/a_test.go":                  "package a_test\n\nimport (\n\t_ \"example.org/m/a\"\n\t_ \"example.org/m/locking/redistest\"\n)\n\nfunc Exported() { go func() {}() }\n",
		"a/slow_test.go":               "//go:build !race\n\npackage a\n\nfunc TestSlow() {}\n",
		"a/sub/pure_test.go":           "//go:build !race\n\npackage sub\n\nfunc TestPure() {}\n",
		"Makefile":                     "SUB := ./a/sub\nWITHOUT_RACE := 'TestMain$$|TestSlow$$'\n\nwithout-race: x ## y\n\tgo test -run $(WITHOUT_RACE) ./a ./b\n\tgo test $(SUB)\n\nother:\n\tgo test ./kit\n",
		"a/sub/sub.go":                 "// Package sub is below.\npackage sub\n\nimport _ \"example.org/m/a\"\n",
		"kit/kit.go":                   "// Package kit may import the library.\npackage kit\n\nimport _ \"example.org/m/a/sub\"\n",
		"locking/redistest/r.go":       "// Package redistest is a kit.\npackage redistest\n",
		"cmd/prog/main.go":             "// Command prog runs.\npackage main\n\nimport _ \"example.org/m/kit\"\n\nfunc main() { go func() {}() }\n\nfunc Exported() {}\n",
		"cmd/own/go.mod":               "module example.org/own\n",
		"cmd/own/main.go":              "package main\n\nimport _ \"example.org/m/nowhere\"\n",
		"a/testdata/broken.go":         "not Go at all",
		".bin/tool.go":                 "not Go at all",
		"docs/decisions/0001-first.md": "# One\n\n[back](../architecture.md#goroutines)\n",
	})
}

func files(text map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, s := range text {
		m[name] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

// edit replaces a piece of one file of a tree.
func edit(name, from, to string) func(*testing.T, fstest.MapFS) {
	return func(t *testing.T, m fstest.MapFS) {
		t.Helper()
		text := string(m[name].Data)
		if !strings.Contains(text, from) {
			t.Fatalf("%s does not hold %q", name, from)
		}
		m[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, from, to, 1))}
	}
}

// add puts one more file into a tree.
func add(name, text string) func(*testing.T, fstest.MapFS) {
	return func(_ *testing.T, m fstest.MapFS) { m[name] = &fstest.MapFile{Data: []byte(text)} }
}

func remove(name string) func(*testing.T, fstest.MapFS) {
	return func(_ *testing.T, m fstest.MapFS) { delete(m, name) }
}

// brokenTrees each break one rule in one way.
var brokenTrees = []struct {
	check string
	broke func(*testing.T, fstest.MapFS)
	want  string // part of what the check must say
}{
	{"arrows", edit("a/a.go", "package a\n", "package a\n\nimport _ \"example.org/m/a/sub\"\n"), "a/a.go imports a/sub: no arrow a -> a/sub"},
	{"arrows", edit("a/a_test.go", "m/a\"", "m/kit\""), "a/a_test.go imports kit"},
	{"arrows", edit("a/sub/sub.go", "m/a\"", "m/locking/redistest\""), "a/sub/sub.go imports locking/redistest"},
	{"arrows", edit("kit/kit.go", "m/a/sub", "m/cmd/prog"), "kit/kit.go imports cmd/prog"},
	{"arrows", add("b/b.go", "// Package b is new.\npackage b\n"), "do not name package b"},
	{"arrows", add("a/none/n.go", "// Package none came.\npackage none\n"), "a/none is marked (later) but exists"},
	{"arrows", edit(architecture, "(later) not built", "not built"), "a/none does not exist"},
	{"arrows", edit(architecture, "a/sub    -> a ", "a/sub    -> a zzz "), "do not name zzz"},
	{"arrows", edit(architecture, "docs     ->", "docs     ->\ndocs ->"), "each name once"},
	{"arrows", edit(architecture, "```arrows", "```"), "no block of arrows"},
	{"package comments", edit("a/sub/sub.go", "// Package sub is below.\n", ""), "a/sub: 0 package comments"},
	{"package comments", edit("a/a_linux.go", "package a", "\n// Package a again.\npackage a"), "a: 2 package comments"},
	{"package comments", edit("cmd/prog/main.go", "// Command prog runs.\n", ""), "cmd/prog: 0 package comments"},
	{"links", edit("README.md", "a/)", "b/)"), "README.md: link b/: no such file"},
	{"links", edit("README.md", "the-map-1", "the-map-2"), "no such heading"},
	{"links", edit(architecture, "(#the-map)", "(#nowhere)"), "docs/architecture.md: link #nowhere: no such heading"},
	{"links", edit(architecture, "../a/a.go", "../a/b.go"), "link ../a/b.go: no such file"},
	{"links", edit(architecture, "../a/a.go", "../a/a.go#L3"), "no headings"},
	{"links", edit("README.md", "(a/)", "(../a/)"), "not a path inside"},
	{"links", edit("docs/decisions/0001-first.md", "../arch", "arch"), "docs/decisions/0001-first.md: link"},
	{"links", remove("README.md"), "README.md"},
	{"no replace", edit("go.mod", "require", "replace example.org/other => ../other\nrequire"), "replace is not for a library"},
	{"no replace", edit("go.mod", "require", "replace(\n)\nrequire"), "replace is not for a library"},
	{"file length", edit("a/a.go", "package a", "package a\n"+strings.Repeat("\n", maxLines)), "a/a.go: 317 lines, at most 300"},
	{"goroutines", add("a/b.go", "package a\n\nfunc f() { go f() }\n"), "a/b.go:f starts a goroutine"},
	{"goroutines", add("a/b.go", "package a\n\nfunc (t T[X]) f() { t.wg.Go(nil) }\n"), "a/b.go:T.f starts a goroutine"},
	{"goroutines", add("a/b.go", "package a\n\nvar v = func() { time.AfterFunc(1, nil) }\n"), "a/b.go:v starts a goroutine"},
	{"goroutines", edit("a/a.go", "go func", "func"), "names a/a.go:T.Run, which starts no goroutine"},
	{"goroutines", edit(architecture, "`a/a.go:T.Ebb` (later)", "`a/a.go:T.Ebb`"), "names a/a.go:T.Ebb"},
	{"goroutines", edit(architecture, "| Run returns |", "| |"), "want name, owner, started by, ends when"},
	{"goroutines", edit(architecture, "## Goroutines", "## Threads"), "no section Goroutines"},
	{"doc comments", edit("a/a.go", "// T is a type.\n", ""), "a/a.go: T has no doc comment"},
	{"doc comments", edit("a/a.go", "// Run runs.\n", ""), "a/a.go: T.Run has no doc comment"},
	{"doc comments", edit("a/a.go", "// The limits.\n", ""), "a/a.go: Low has no doc comment"},
	{"doc comments", edit("a/a.go", " // X marks the spot.", ""), "a/a.go: X has no doc comment"},
	{"without race", add("a/more_test.go", "//go:build !race\n\npackage a\n\nfunc TestSlower() {}\n"), "a/more_test.go: TestSlower runs nowhere"},
	{"without race", add("kit/slow_test.go", "//go:build !race\n\npackage kit\n\nfunc TestSlow() {}\n"), "kit/slow_test.go: TestSlow runs nowhere"},
	{"without race", edit("Makefile", "$(SUB)", "./b"), "a/sub/pure_test.go: TestPure runs nowhere"},
	{"without race", edit("Makefile", "without-race:", "without:"), "no target without-race"},
	{"doc comments", add("a/b.go", "package a\n\n// Kinds.\ntype (\n\tU int\n)\n"), "a/b.go: U has no doc comment"},
}

func TestGoodTreePasses(t *testing.T) {
	tree, err := loadTree(goodTree())
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range checks {
		for _, problem := range check(tree) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestChecksCanFail breaks the good tree, once for each way that a check knows.
func TestChecksCanFail(t *testing.T) {
	unproven := maps.Clone(checks)
	for _, tt := range brokenTrees {
		delete(unproven, tt.check)
		t.Run(tt.check+"/"+tt.want, func(t *testing.T) {
			root := goodTree()
			tt.broke(t, root)
			tree, err := loadTree(root)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(checks[tt.check](tree), "\n")
			if !strings.Contains(problems, tt.want) {
				t.Errorf("want a problem with %q, got:\n%s", tt.want, problems)
			}
		})
	}
	for name := range unproven {
		t.Errorf("no broken tree shows that the check %q can fail", name)
	}
}

// TestUnreadableTree wants an error, not a quiet pass, when there is nothing to check.
func TestUnreadableTree(t *testing.T) {
	for name, root := range map[string]fs.FS{
		"no go.mod":    fstest.MapFS{},
		"no module":    files(map[string]string{"go.mod": "go 1.26\n"}),
		"not Go":       files(map[string]string{"go.mod": "module m\n", "a.go": "packages"}),
		"no such root": os.DirFS("nowhere"),
	} {
		if _, err := loadTree(root); err == nil {
			t.Errorf("%s: loadTree returned no error", name)
		}
	}
}
