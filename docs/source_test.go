package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// maxLines is the length at which a file holds two ideas.
const maxLines = 300

// checkPackageComments wants one package comment in each package: none leaves a
// reader alone, two are joined by godoc in the order of the files' names.
func checkPackageComments(t *tree) (problems []string) {
	comments := map[string]int{}
	for _, f := range t.files {
		if !f.test && written(f.ast.Doc) {
			comments[f.dir]++
		}
	}
	for _, dir := range t.packages() {
		if n := comments[dir]; n != 1 {
			problems = append(problems, fmt.Sprintf("%s: %d package comments, want one", dir, n))
		}
	}
	return problems
}

// checkFileLength holds non-test files to maxLines, without exception.
func checkFileLength(t *tree) (problems []string) {
	for _, f := range t.files {
		if !f.test && f.lines > maxLines {
			problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d: which two ideas are in it?", f.path, f.lines, maxLines))
		}
	}
	return problems
}

// checkNoReplace keeps go.mod installable: `go install module@version` refuses
// a module with replace lines, and importers never see them.
func checkNoReplace(t *tree) []string {
	text, problems := t.read("go.mod")
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "replace") {
			problems = append(problems, "go.mod: "+strings.TrimSpace(line)+": replace is not for a library")
		}
	}
	return problems
}

// checkDocComments wants a comment on every exported name of the library. In a
// group of constants or variables the group's own comment, or one at the end of
// the line, will do.
func checkDocComments(t *tree) (problems []string) {
	for _, f := range t.files {
		if !f.library() {
			continue
		}
		for _, name := range undocumented(f.ast) {
			problems = append(problems, fmt.Sprintf("%s: %s has no doc comment", f.path, name))
		}
	}
	return problems
}

func undocumented(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d) + "." + name
			}
			if d.Name.IsExported() && token.IsExported(name) && !written(d.Doc) {
				names = append(names, name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, undocumentedSpec(d, spec)...)
			}
		}
	}
	return names
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		alone := !d.Lparen.IsValid() && written(d.Doc)
		if s.Name.IsExported() && !alone && !written(s.Doc) {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && !written(d.Doc) && !written(s.Doc) && !written(s.Comment) {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// written reports whether a comment has words: directives such as go:build have none.
func written(c *ast.CommentGroup) bool { return c != nil && strings.TrimSpace(c.Text()) != "" }

// receiver is the name of a method's type, without pointer and type parameters.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	for {
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

// checkTopLevel wants all Go code in the folders that the repository begins with.
func checkTopLevel(t *tree) (problems []string) {
	for _, f := range t.files {
		switch top, _, _ := strings.Cut(f.path, "/"); top {
		case "cmd", "docs", "jobs", "locking", "scheduler", "sharding":
		default:
			problems = append(problems, fmt.Sprintf("%s: no Go code belongs below %s", f.path, top))
		}
	}
	return problems
}

// checkRaceTags wants every test to run under the race detector.
func checkRaceTags(t *tree) (problems []string) {
	for _, f := range t.files {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:build") && strings.Contains(c.Text, "!race") {
					problems = append(problems, f.path+": is left out under the race detector")
				}
			}
		}
	}
	return problems
}
