package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// promises are the promises that marks may name. Each needs a guard.
var promises = []string{"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"}

// mark is a directive that names a guard: the if or the statement on the line after it.
type mark struct {
	Name, Promise, Reason string
	File                  string // from the module's root, with slashes
	Line                  int    // of the directive, or of the last line of its reason
}

// place is the file and the line of the guard.
func (m mark) place() string { return fmt.Sprintf("%s:%d", m.File, m.Line+1) }

// findMarks returns the marks in Go files and Lua scripts below root, without tests, by file and
// line.
func findMarks(root string) ([]mark, error) {
	var all []mark
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(path)
		if ext != ".lua" && ext != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path) //nolint:gosec // G304, G122: a file of this module
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		marks, err := marksIn(filepath.ToSlash(file), src)
		all = append(all, marks...)
		return err
	})
	return all, err
}

// marksIn returns the marks in one file: lines that are a directive from their beginning on.
func marksIn(file string, src []byte) ([]mark, error) {
	prefix := "-- guard:"
	if filepath.Ext(file) == ".go" {
		prefix = "//guard:"
	}
	var all []mark
	lines := strings.Split(string(src), "\n")
	for i, line := range lines {
		text, found := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if !found {
			continue
		}
		m, err := parseMark(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		m.File, m.Line = file, i+1
		for m.Line < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[m.Line]), prefix[:2]) {
			m.Line++ // the reason goes on
		}
		all = append(all, m)
	}
	return all, nil
}

var nameOf = regexp.MustCompile(`^[a-z0-9]+([-_][a-z0-9]+)*$`)

// parseMark reads the text after the colon of a directive.
func parseMark(text string) (mark, error) {
	name, rest, _ := strings.Cut(text, " ")
	promise, reason, _ := strings.Cut(rest, " ")
	switch {
	case !nameOf.MatchString(name):
		return mark{}, fmt.Errorf("guard %q: a name is made of lower-case letters, digits, - and _", name)
	case !slices.Contains(promises, promise):
		return mark{}, fmt.Errorf("guard %s: %q is no promise; write one of %s after the name", name, promise, strings.Join(promises, " "))
	case strings.TrimSpace(reason) == "":
		return mark{}, fmt.Errorf("guard %s: say in plain words what it keeps, after the promise", name)
	}
	return mark{Name: name, Promise: promise, Reason: reason}, nil
}
