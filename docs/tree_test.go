package docs_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// goFile is one parsed Go file of the module.
type goFile struct {
	path  string // slashes, from the module's root
	dir   string // its package's folder
	test  bool
	lines int
	ast   *ast.File
}

// library reports whether f is code that users import: neither a program nor a test.
func (f goFile) library() bool { return !f.test && !strings.HasPrefix(f.path, "cmd/") }

// tree is the module as the checks see it. The files are parsed here, in the
// test's own process, and not by `go list`: the test cache sees only the files
// that the test itself opens.
type tree struct {
	root   fs.FS
	fset   *token.FileSet
	module string
	files  []goFile
}

// loadTree reads every Go file below root that belongs to root's module.
func loadTree(root fs.FS) (*tree, error) {
	t := &tree{root: root, fset: token.NewFileSet()}
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	if t.module == "" {
		return nil, fmt.Errorf("go.mod: no module line")
	}
	return t, fs.WalkDir(root, ".", t.visit)
}

func (t *tree) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case d.IsDir() && name != "." && t.foreign(name):
		return fs.SkipDir
	case d.IsDir() || path.Ext(name) != ".go":
		return nil
	}
	src, err := fs.ReadFile(t.root, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, goFile{
		path:  name,
		dir:   path.Dir(name),
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")),
		ast:   f,
	})
	return nil
}

// foreign reports whether a folder is not part of the module's source: hidden,
// built, test data, or a module of its own.
func (t *tree) foreign(dir string) bool {
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || dir == "bin" {
		return true
	}
	_, err := fs.Stat(t.root, path.Join(dir, "go.mod"))
	return err == nil
}

// packages lists the folders that hold Go files, sorted.
func (t *tree) packages() []string {
	var dirs []string
	for _, f := range t.files {
		dirs = append(dirs, f.dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// markdown lists the documents whose links are kept true, sorted.
func (t *tree) markdown() ([]string, error) {
	docs := []string{"README.md"}
	err := fs.WalkDir(t.root, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			docs = append(docs, name)
		}
		return err
	})
	return docs, err
}

// read returns a document's text, or a problem that names it.
func (t *tree) read(name string) (string, []string) {
	text, err := fs.ReadFile(t.root, name)
	if err != nil {
		return "", []string{err.Error()}
	}
	return string(text), nil
}
