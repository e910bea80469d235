package docs_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const architecture = "docs/architecture.md"

// kits are the packages that any test file may import besides its arrows: test kits, the judge, the model, and the node and the client, by which
// tests of whole clusters act.
var kits = []string{"locking/redistest", "locking/locktest", "cmd/internal/testkit", "cmd/internal/cmdtest", "scheduler/schedtest", "scheduler/internal/audit", "scheduler/internal/model", "scheduler", "scheduler/ops"}

// internal is written as ~ in the block.
const internal = "scheduler/internal/"

// arrow is what a package may import, and the place of the package in the block.
type arrow struct {
	no    int
	to    []string
	later bool // named in the block, not built yet
}

// checkArrows compares the imports inside the module with the block `arrows` of
// architecture.md. Two words stand for many packages: "library" for everything
// outside cmd, "anything" for everything. A name that ends in /* stands for each
// package below it.
func checkArrows(t *tree) []string {
	arrows, problems := t.arrows()
	if len(arrows) == 0 {
		return append(problems, architecture+": no block of arrows")
	}
	existing := t.packages()
	used := map[string]bool{}
	for _, dir := range existing {
		name, ok := match(arrows, dir)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: the arrows do not name package %s", architecture, dir))
		}
		used[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		switch a := arrows[name]; {
		case a.later && used[name]:
			problems = append(problems, fmt.Sprintf("%s: %s is marked (later) but exists", architecture, name))
		case !a.later && !used[name]:
			problems = append(problems, fmt.Sprintf("%s: %s does not exist and is not marked (later)", architecture, name))
		}
		for _, to := range arrows[name].to {
			if to == "library" || to == "anything" {
				continue
			}
			if below, ok := match(arrows, to); !ok {
				problems = append(problems, fmt.Sprintf("%s: %s -> %s: the arrows do not name %s", architecture, name, to, to))
			} else if arrows[below].no >= arrows[name].no {
				problems = append(problems, fmt.Sprintf("%s: %s -> %s goes up: name %s first", architecture, name, to, to))
			}
		}
	}
	for _, f := range t.files {
		problems = append(problems, t.checkImports(f, arrows)...)
	}
	return problems
}

func (t *tree) checkImports(f goFile, arrows map[string]arrow) (problems []string) {
	name, ok := match(arrows, f.dir)
	if !ok {
		return nil // reported once, by the caller
	}
	for _, spec := range f.ast.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", f.path, err))
			continue
		}
		to, inside := strings.CutPrefix(imported, t.module+"/")
		above := path.Dir(to)
		if !inside || to == f.dir || allowed(arrows[name].to, to) || f.test && (slices.Contains(kits, to) || above == f.dir || allowed(arrows[name].to, above)) {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s imports %s: no arrow %s -> %s in %s", f.path, to, f.dir, to, architecture))
	}
	return problems
}

func allowed(to []string, imported string) bool {
	inLibrary := !strings.HasPrefix(imported, "cmd/") && imported != "docs"
	return slices.Contains(to, imported) || slices.Contains(to, "anything") || slices.Contains(to, "library") && inLibrary
}

// match finds the line of the block that speaks for a package.
func match(arrows map[string]arrow, dir string) (string, bool) {
	if _, ok := arrows[dir]; ok {
		return dir, true
	}
	for name := range arrows {
		if prefix, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(dir, prefix) {
			return name, true
		}
	}
	return "", false
}

// arrows reads the block: "name: what it is, (later) when it does not exist yet", and below that
// indented lines with its targets.
func (t *tree) arrows() (map[string]arrow, []string) {
	text, problems := t.read(architecture)
	arrows := map[string]arrow{}
	_, block, _ := strings.Cut(text, "\n```arrows\n")
	block, _, _ = strings.Cut(block, "\n```")
	last := ""
	for line := range strings.SplitSeq(block, "\n") {
		indented := strings.HasPrefix(line, " ")
		name, words, ok := strings.Cut(line, ": ")
		name = fullName(name)
		_, twice := arrows[name]
		switch {
		case strings.TrimSpace(line) == "":
		case indented && last != "":
			a := arrows[last]
			for _, to := range strings.Fields(line) {
				a.to = append(a.to, fullName(to))
			}
			arrows[last] = a
		case indented || !ok || twice || strings.Contains(name, " "):
			problems = append(problems, fmt.Sprintf("%s: arrow %q: want \"name: words\", each name once, and indented lines of targets", architecture, line))
		default:
			arrows[name], last = arrow{no: len(arrows), later: strings.Contains(words, "(later)")}, name
		}
	}
	return arrows, problems
}

// fullName is a name of the block as imports have it.
func fullName(name string) string {
	if below, short := strings.CutPrefix(name, "~"); short {
		return internal + below
	}
	return name
}
