package docs_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	testName  = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testsHere = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// checkTestNames wants a test, or some with that prefix, for every name of a test in the documents.
func checkTestNames(t *tree) (problems []string) {
	var tests strings.Builder
	err := fs.WalkDir(t.root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(t.root, name)
		for _, m := range testsHere.FindAllSubmatch(src, -1) {
			fmt.Fprintf(&tests, " %s", m[1])
		}
		return err
	})
	docs, err2 := t.markdown()
	if err != nil || err2 != nil {
		return []string{fmt.Sprint(err, err2)}
	}
	for _, doc := range docs {
		text, missing := t.read(doc)
		problems = append(problems, missing...)
		prose(text, func(line string) {
			for _, name := range testName.FindAllString(strings.Join(inlineCode.FindAllString(line, -1), " "), -1) {
				if !strings.Contains(tests.String(), " "+name) {
					problems = append(problems, fmt.Sprintf("%s: %s: no such test", doc, name))
				}
			}
		})
	}
	return problems
}

// reasonsFile has a table of every reason with which the ledger records an outcome.
const reasonsFile = "docs/policies.md"

// checkReasons wants each constant Reason... of the ledger in the table of reasons.
func checkReasons(t *tree) (problems []string) {
	text, _ := t.read(reasonsFile)
	_, table, _ := strings.Cut(text, "| outcome | reasons |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, f := range t.files {
		if f.test || !strings.HasPrefix(f.dir, path.Join("scheduler", "internal", "ledger")) {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, constants := d.(*ast.GenDecl); constants && d.Tok == token.CONST {
				problems = append(problems, reasonsWithoutRow(table, d.Specs)...)
			}
		}
	}
	return problems
}

func reasonsWithoutRow(table string, specs []ast.Spec) (problems []string) {
	for _, s := range specs {
		s, values := s.(*ast.ValueSpec)
		if !values || !strings.HasPrefix(s.Names[0].Name, "Reason") || len(s.Values) == 0 {
			continue
		}
		if text, plain := s.Values[0].(*ast.BasicLit); plain {
			if word, err := strconv.Unquote(text.Value); err != nil || !strings.Contains(table, "`"+word+"`") {
				problems = append(problems, fmt.Sprintf("%s: the table of reasons has no `%s`", reasonsFile, word))
			}
		}
	}
	return problems
}
