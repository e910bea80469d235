package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the form of a setting's value: in a document, and in Go.
type Kind uint8

// The kinds.
const (
	Text     Kind = iota // any text; string
	Name                 // a name, see IsName; string
	Word                 // one of Words; a type with MarshalText and UnmarshalText
	Count                // a whole number; int
	Duration             // 90s, 5m, 2d; time.Duration, whole milliseconds
	Instant              // RFC 3339; time.Time, whole milliseconds, UTC
	Texts                // a list of texts; []string
	Names                // a list of names, or one name alone; []string
	Labels               // a mapping of texts to texts; map[string]string
	JSON                 // any value; []byte, JSON
)

var kindForms = [...]string{
	Text: "a text", Name: "a name", Word: "a word", Count: "a whole number", Duration: "a duration such as 90s, 5m or 2d",
	Instant: "an instant with its offset, such as 2026-12-24T08:00:00Z", Texts: "a list of texts", Names: "a name, or a list of names",
	Labels: "a section of texts", JSON: "any value",
}

// String describes a value of the kind.
func (k Kind) String() string {
	if int(k) < len(kindForms) {
		return kindForms[k]
	}
	return fmt.Sprintf("kind(%d)", k)
}

// Setting is one row of the table.
type Setting struct {
	// Name is the path in a document: "retry.max".
	Name string
	// Field is the path in the struct of a job: "Retry.Max".
	Field string
	Kind  Kind
	// Words are the values of a Word, in the order of the Go constants; the first is the default.
	Words []string
	// Min and Max bound a Count, and a Duration in nanoseconds; Max bounds the elements of lists
	// and mappings, and the bytes of JSON. A Max of 0 is no bound. The zero value of Go is never
	// outside: it means that the setting is not given.
	Min, Max int64
	// Default is the value of a setting that is not given, as a document has it. "": the zero value
	// of Go.
	Default string
	// With is the setting without which this one is refused: "retry.max", or with a value
	// "catch_up: all".
	With string
	// Unscheduled reports that a job with after is refused this setting, because it has no schedule
	// of its own.
	Unscheduled bool
	// Ticks reports that the setting decides which ticks a job has: a change moves its cursor.
	Ticks bool
	// Handled reports that only a job which names a handler can have the setting: a stored job.
	Handled bool
	// Required reports that no job is without the setting.
	Required bool
	// Sentence is the effect of the setting: one sentence, without its name and without a full
	// stop.
	Sentence string
	// Judged is the use of the setting in a verdict of schedtest. "": a plan with the setting is
	// refused, for the reason Unjudged.
	Judged, Unjudged string

	stored, flag string // where they do not follow from Name
	hint         string // after the fault of a value out of bounds
	always       bool   // stored definitions have the setting also without a value
	unstored     string // a value that stored definitions leave out
}

// All returns the table, in the order of documents.
func All() []Setting { return table[:] }

// Named returns the setting of a name.
func Named(name string) (Setting, bool) {
	for _, s := range table {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// must returns the setting of a name that is in the table.
func must(name string) Setting {
	s, known := Named(name)
	if !known {
		panic("spec: no setting " + name)
	}
	return s
}

// WordsOf returns the words of a setting.
func WordsOf(name string) []string { return must(name).Words }

// DefaultOf returns the default of a setting, as a document has it.
func DefaultOf(name string) string { return must(name).Default }

// IsSection reports whether a section of this name exists.
func IsSection(name string) bool {
	return name != "" && slices.ContainsFunc(All(), func(s Setting) bool { return s.Section() == name })
}

// StoredKey returns the key of the setting in a stored definition, whose numbers are milliseconds:
// "retry_backoff_ms".
func (s Setting) StoredKey() string {
	if s.stored != "" {
		return s.stored
	}
	key := strings.ReplaceAll(s.Name, ".", "_")
	if s.Kind == Duration || s.Kind == Instant {
		key += "_ms"
	}
	return key
}

// Flag returns the flag of the command line, without dashes in front: "retry-max".
func (s Setting) Flag() string {
	if s.flag != "" {
		return s.flag
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(s.Name)
}

// Section and Key split the name: "retry" and "max". The section of most settings is "".
func (s Setting) Section() string {
	section, _, found := strings.Cut(s.Name, ".")
	if !found {
		return ""
	}
	return section
}

// Key returns the last part of the name, which is the key in the setting's section.
func (s Setting) Key() string { return s.Name[strings.LastIndexByte(s.Name, '.')+1:] }

// Bounds returns the bounds of a Count or a Duration in words, such as "1 to 100"; "" without any.
func (s Setting) Bounds() string {
	switch {
	case s.Kind != Count && s.Kind != Duration, s.Min == 0 && s.Max == 0:
		return ""
	case s.Max == 0:
		return "at least " + s.bound(s.Min)
	default:
		return s.bound(s.Min) + " to " + s.bound(s.Max)
	}
}

// LeaveOut is the text after a fault that offers to leave the setting out; "" for a setting without
// a default.
func (s Setting) LeaveOut() string {
	if s.Default == "" {
		return ""
	}
	return "; leave it out for " + s.Default
}

func (s Setting) bound(n int64) string {
	if s.Kind == Duration {
		return FormatDuration(time.Duration(n))
	}
	return fmt.Sprint(n)
}

// needs splits With: a setting, and the word that it must have; "" for any value but the zero
// value.
func (s Setting) needs() (name, word string) {
	name, word, _ = strings.Cut(s.With, ": ")
	return name, word
}
