package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// Place is where a value came from.
type Place struct {
	File string // as the user named it; empty for a flag or a variable
	Line int    // from 1; 0 when the whole file is meant
	Name string // the flag or the environment variable
}

// seenFrom names a line for a reader of another place: by the line alone in the same file.
func (p Place) seenFrom(other Place) string {
	if p.File == other.File {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Fault is one thing wrong with the configuration.
type Fault struct {
	Place
	Path string // "redis.mode", "jobs[report].schedule"
	Msg  string // the fault and the remedy
}

// String is the line a person reads: FILE:LINE: PATH: the fault, or VARIABLE: the fault, or --flag:
// the fault. For a default that conflicts with another setting, and without a file: PATH: the
// fault.
func (f Fault) String() string { return f.At(f.Path) + ": " + f.Msg }

// At names the place of a setting for messages: the flag or the variable, or the line and the path.
func (p Place) At(path string) string {
	if p.Name != "" {
		return p.Name
	}
	if strings.ContainsFunc(path, unicode.IsControl) { // a key may hold a line end
		path = strings.Trim(strconv.Quote(path), `"`)
	}
	if p.File == "" {
		return path
	}
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if path == "" {
		return at
	}
	return at + ": " + path
}

// Error is all faults of a configuration, in the order of the files; faults of variables and
// flags come last.
type Error []Fault

// Error joins the faults, one on each line.
func (e Error) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Faults collects faults. The zero value is empty.
type Faults struct {
	all   Error
	paths map[string]bool
}

// Add adds a fault of the setting at a path.
func (l *Faults) Add(at Place, path, format string, args ...any) {
	if l.paths == nil {
		l.paths = map[string]bool{}
	}
	l.paths[path] = true
	l.all = append(l.all, Fault{Place: at, Path: path, Msg: fmt.Sprintf(format, args...)})
}

// has reports whether a fault of this very path was found.
func (l *Faults) has(path string) bool { return l.paths[path] }

// drop removes the faults of some paths.
func (l *Faults) drop(of func(path string) bool) {
	l.all = slices.DeleteFunc(l.all, func(f Fault) bool { return of(f.Path) })
}

// Err returns the faults in order as an Error, or nil when there are none.
func (l *Faults) Err() error {
	if len(l.all) == 0 {
		return nil
	}
	slices.SortStableFunc(l.all, func(a, b Fault) int {
		switch { // a flag or variable has no file, and comes last
		case a.File == "" && b.File != "":
			return 1
		case a.File != "" && b.File == "":
			return -1
		}
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return l.all
}

// origins remembers, for each path that was given, where it was given.
type origins struct {
	File string
	at   map[string]Place
}

func newOrigins(file string) origins {
	return origins{File: file, at: map[string]Place{}}
}

func (o origins) line(path string, line int) { o.at[path] = Place{File: o.File, Line: line} }

// From records the flag or variable that has replaced all of the path, and drops the places of its
// parts in a file.
func (o origins) from(path, name string) {
	for p := range o.at {
		if strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[") {
			delete(o.at, p)
		}
	}
	o.at[path] = Place{Name: name}
}

// given reports whether the path itself was set by a file, a variable or a flag.
func (o origins) given(path string) bool { _, ok := o.at[path]; return ok }

// Of returns where a path was given, or the nearest thing around it that was:
// a missing schedule is reported at the line where its job begins.
func (o origins) Of(path string) Place {
	for p := path; p != ""; p = parentPath(p) {
		if at, ok := o.at[p]; ok {
			return at
		}
	}
	return Place{File: o.File}
}

// parentPath cuts the last key: "jobs[a.b].retry.max", "jobs[a.b].retry", "jobs[a.b]", "jobs", "".
func parentPath(path string) string {
	dot, bracket := strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, ']')
	if dot > bracket {
		return path[:dot]
	}
	return path[:max(strings.IndexByte(path, '['), 0)]
}

// parse returns the one mapping of the text, or nil and a fault.
func (d *decoder) parse(text []byte) *yaml.Node {
	if at, msg := refuseText(text); msg != "" {
		d.faults.Add(Place{File: d.File, Line: at}, "", "%s", msg)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		d.faults.Add(Place{File: d.File}, "", "the file is empty; write settings into it, or begin with what escapement config init writes")
		return nil
	} else if err != nil {
		line, msg := yamlFault(err, text)
		d.faults.Add(Place{File: d.File, Line: line}, "", "%s", msg)
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		d.faults.Add(Place{File: d.File, Line: second.Line}, "", "a second document (---) begins here; a configuration is one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		line, msg := yamlFault(err, text)
		d.faults.Add(Place{File: d.File, Line: line}, "", "%s", msg)
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.faults.Add(Place{File: d.File, Line: root.Line}, "", "want `key: value` lines, found %s", nodeKind(root))
		return nil
	}
	return root
}

// refuseText finds text that is not UTF-8, for which the parser's words are bad.
func refuseText(text []byte) (line int, msg string) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return 1, "the file is UTF-16; save it as UTF-8"
	}
	for i, lineText := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(lineText) {
			return i + 1, "the text is not UTF-8; save the file as UTF-8"
		}
		if bytes.IndexByte(lineText, 0) >= 0 {
			return i + 1, "a NUL byte; name a text file"
		}
	}
	return 0, ""
}

var (
	yamlLine      = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// yamlFault turns the parser's error into a line and a sentence. The parser counts some of its
// lines from 0, reports a tab only as a character that cannot start a token, and an alias to
// nothing without a line.
func yamlFault(err error, text []byte) (line int, msg string) {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return 1, spec.Clip(err.Error())
	}
	msg = m[2]
	line, bad := strconv.Atoi(m[1])
	if bad != nil || strings.HasPrefix(msg, "did not find expected") {
		line++
	}
	lines := strings.Split(string(text), "\n")
	if strings.Contains(msg, "alphabetic or numeric character") || strings.Contains(msg, "cannot start any token") {
		if at, words := unquoted(lines, line); at > 0 {
			return at, words
		}
	}
	if u := unknownAnchor.FindStringSubmatch(msg); u != nil {
		for i, l := range lines {
			if strings.Contains(l, "*"+u[1]) {
				// Its name is not printed: it may be a password.
				return i + 1, "anchors and aliases (&NAME, *NAME) are not read; write the value out, or quote it if it is a text"
			}
		}
	}
	for i := max(0, line-1); i < min(len(lines), line+1); i++ {
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
		if strings.Contains(indent, "\t") {
			return i + 1, "a tab in the indentation; indent with spaces"
		}
	}
	return line, "not YAML: " + msg
}

// special is a value that begins as an alias or a reserved word does, and was meant as a text: a
// schedule, or a password.
var special = regexp.MustCompile(`(?:^|[-:{,])[ \t]+([*@][^#},]*)`)

// unquoted finds such a value in the line at which the parser stopped, which counts from 0 or 1, or
// in the last line before it with such a value. Only a schedule is shown: any other value may be a
// secret.
func unquoted(lines []string, stopped int) (line int, words string) {
	for i := min(stopped, len(lines)) - 1; i >= 0; i-- {
		text, _, _ := strings.Cut(lines[i], " #")
		if m := special.FindStringSubmatchIndex(text); m != nil {
			value := text[m[2]:m[3]]
			words = "a value that begins with " + value[:1] + " stands in quotes"
			if strings.HasSuffix(text[:m[0]], "schedule") {
				words += ": " + print.Quote(strings.TrimSpace(value))
			}
			return i + 1, words
		}
		if i < stopped-2 {
			break
		}
	}
	return 0, ""
}
