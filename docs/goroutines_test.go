package docs_test

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// place is the form in which the table names a function: `locking/keeper.go:Keeper.Hold`.
var place = regexp.MustCompile("`([a-z0-9_/]+\\.go:[A-Za-z0-9_.]+)`")

// checkGoroutines compares the places of the library that start a goroutine with
// the table of goroutines in architecture.md, both ways. A row of something not
// built yet says (later). Programs may be listed and need not be.
func checkGoroutines(t *tree) []string {
	listed, problems := t.goroutineTable()
	var started []string
	for _, f := range t.files {
		if f.test {
			continue
		}
		for _, where := range goStatements(f) {
			started = append(started, where)
			if _, ok := listed[where]; f.library() && !ok {
				problems = append(problems, fmt.Sprintf("%s starts a goroutine: not in the table of %s", where, architecture))
			}
		}
	}
	for where, later := range listed {
		if !later && !slices.Contains(started, where) {
			problems = append(problems, fmt.Sprintf("%s: the table names %s, which starts no goroutine", architecture, where))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// goStatements lists "file:Function" for each start of a goroutine in f: a go
// statement, Go of a group, AfterFunc of time or context.
func goStatements(f goFile) (where []string) {
	for _, decl := range f.ast.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			if starts(n) {
				where = append(where, f.path+":"+declName(decl))
			}
			return true
		})
	}
	return where
}

func starts(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (sel.Sel.Name == "Go" || sel.Sel.Name == "AfterFunc")
	}
	return false
}

// declName names a declaration as the table does: Function, Type.Method, or the
// first name of a var.
func declName(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if r := receiver(d); r != "" {
			return r + "." + d.Name.Name
		}
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return "?"
}

// receiver is the name of a method's type, without pointer and type parameters.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	for expr := d.Recv.List[0].Type; ; {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// goroutineTable reads the places named under the heading "Goroutines"; the
// value says whether the row is marked (later).
func (t *tree) goroutineTable() (map[string]bool, []string) {
	text, problems := t.read(architecture)
	_, section, ok := strings.Cut(text, "\n## Goroutines\n")
	if !ok {
		problems = append(problems, architecture+": no section Goroutines")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			problems = append(problems, fmt.Sprintf("%s: row %q: want name, owner, started by, ends when", architecture, line))
		}
		for _, m := range place.FindAllStringSubmatch(line, -1) {
			listed[m[1]] = strings.Contains(line, "(later)")
		}
	}
	return listed, problems
}
