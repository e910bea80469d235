package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is where a value came from.
type place struct {
	file string // as the user named it; empty for a flag or a variable
	line int    // from 1; 0 when the whole file is meant
	name string // the flag or the environment variable
}

// seenFrom names a line for a reader of another place: by the line alone in the same file.
func (p place) seenFrom(other place) string {
	if p.file == other.file {
		return fmt.Sprintf("line %d", p.line)
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// fault is one thing wrong with the configuration.
type fault struct {
	place
	path string // "redis.mode", "jobs[report].schedule"
	msg  string // the fault and the remedy
}

// String is the line a person reads: FILE:LINE: PATH: the fault, or VARIABLE: the fault, or --flag:
// the fault. For a default that conflicts with another setting, and without a file: PATH: the
// fault.
func (f fault) String() string { return f.at(f.path) + ": " + f.msg }

// at names the place of a setting for messages: the flag or the variable, or the line and the path.
func (p place) at(path string) string {
	if p.name != "" {
		return p.name
	}
	if strings.ContainsFunc(path, unicode.IsControl) { // a key may hold a line end
		path = strings.Trim(strconv.Quote(path), `"`)
	}
	if p.file == "" {
		return path
	}
	at := p.file
	if p.line > 0 {
		at = fmt.Sprintf("%s:%d", p.file, p.line)
	}
	if path == "" {
		return at
	}
	return at + ": " + path
}

// configError is all faults of a configuration, in the order of the files; faults of variables and
// flags come last.
type configError []fault

// Error joins the faults, one on each line.
func (e configError) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// faultList collects faults. The zero value is empty.
type faultList struct {
	all   configError
	paths map[string]bool
}

func (l *faultList) add(at place, path, format string, args ...any) {
	if l.paths == nil {
		l.paths = map[string]bool{}
	}
	l.paths[path] = true
	l.all = append(l.all, fault{place: at, path: path, msg: fmt.Sprintf(format, args...)})
}

// has reports whether a fault of this very path was found.
func (l *faultList) has(path string) bool { return l.paths[path] }

// drop removes the faults of some paths.
func (l *faultList) drop(of func(path string) bool) {
	l.all = slices.DeleteFunc(l.all, func(f fault) bool { return of(f.path) })
}

// err returns the faults in order as a configError, or nil when there are none.
func (l *faultList) err() error {
	if len(l.all) == 0 {
		return nil
	}
	slices.SortStableFunc(l.all, func(a, b fault) int {
		switch { // a flag or variable has no file, and comes last
		case a.file == "" && b.file != "":
			return 1
		case a.file != "" && b.file == "":
			return -1
		}
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	return l.all
}

// origins remembers, for each path that was given, where it was given.
type origins struct {
	file string
	at   map[string]place
}

func newOrigins(file string) origins {
	return origins{file: file, at: map[string]place{}}
}

func (o origins) line(path string, line int) { o.at[path] = place{file: o.file, line: line} }

// from records the flag or variable that has replaced all of the path, and drops the places of its
// parts in a file.
func (o origins) from(path, name string) {
	for p := range o.at {
		if strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(o.at, p)
		}
	}
	o.at[path] = place{name: name}
}

// given reports whether the path itself was set by a file, a variable or a flag.
func (o origins) given(path string) bool { _, ok := o.at[path]; return ok }

// of returns where a path was given, or the nearest thing around it that was:
// a missing schedule is reported at the line where its job begins.
func (o origins) of(path string) place {
	for p := path; p != ""; p = parentPath(p) {
		if at, ok := o.at[p]; ok {
			return at
		}
	}
	return place{file: o.file}
}

// parentPath cuts the last key: "jobs[a.b].retry.max", "jobs[a.b].retry", "jobs[a.b]", "jobs", "".
func parentPath(path string) string {
	dot, bracket := strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, ']')
	if dot > bracket {
		return path[:dot]
	}
	return path[:max(strings.IndexByte(path, '['), 0)]
}
