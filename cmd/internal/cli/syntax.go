package cli

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// parse returns the one mapping of the text, or nil and a fault.
func (d *decoder) parse(text []byte) *yaml.Node {
	if at, msg := refuseText(text); msg != "" {
		d.faults.add(place{file: d.file, line: at}, "", "%s", msg)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		d.faults.add(place{file: d.file}, "", "the file is empty; write settings into it, or begin with what escapement config init writes")
		return nil
	} else if err != nil {
		line, msg := yamlFault(err, text)
		d.faults.add(place{file: d.file, line: line}, "", "%s", msg)
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		d.faults.add(place{file: d.file, line: second.Line}, "", "a second document (---) begins here; a configuration is one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		line, msg := yamlFault(err, text)
		d.faults.add(place{file: d.file, line: line}, "", "%s", msg)
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.faults.add(place{file: d.file, line: root.Line}, "", "want `key: value` lines, found %s", nodeKind(root))
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
