package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/escapement/escapement/scheduler/ops"
)

// JSON writes one value and a line end. A nil list is written as []. Characters that would
// move a terminal's cursor, or change the direction of text, are written as escapes, which mean the
// same in JSON.
func JSON[T any](w io.Writer, v T) error {
	text, err := ops.Encode(v)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = w.Write(escapedJSON(indented.Bytes()))
	return err
}

// escapedJSON escapes unprintable characters of JSON. encoding/json has escaped the characters
// below a space.
func escapedJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, unprinted) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if unprinted(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// unprinted reports whether a character controls a terminal or the text's direction; not line ends
// and tabs.
func unprinted(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// List is v, or an empty list that JSON writes as [] and not as null.
func List[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// Cell is one value of a table; nothing is "-".
func Cell(text string) string {
	if text == "" {
		return "-"
	}
	return Harmless(text)
}

// Harmless escapes control characters, and characters that change the direction of text.
func Harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsControl(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		case unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// HarmlessLines is Harmless for a text of several lines.
func HarmlessLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Harmless(line)
	}
	return strings.Join(lines, "\n")
}

// FirstLine cuts a text to a line's worth; with a most of 0 all its lines become one.
func FirstLine(text string, most int) string {
	text = strings.TrimSpace(text)
	if most == 0 {
		return strings.ReplaceAll(text, "\n", " ")
	}
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return text
}

// Output returns a run's output, with a line end.
func Output(text string, terminal bool) string {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Printable(text, terminal)
}

// Printable is a part of a run's output. For a terminal, characters that move its cursor or change
// its state are escaped.
func Printable(text string, terminal bool) string {
	if !terminal {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		part := text
		if i := strings.IndexAny(text, "\n\t"); i >= 0 {
			part = text[:i]
		}
		b.WriteString(Harmless(part))
		if text = text[len(part):]; text != "" {
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	return b.String()
}
