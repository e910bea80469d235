package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs/spec"
)

var update = flag.Bool("update", false, "write the table of all settings in policies.md anew")

// settingsFile has the table of all settings, below settingsHeading.
const (
	settingsFile    = "policies.md"
	settingsHeading = "## All settings\n"
)

// TestSettings compares the table of all settings with the rows of jobs/spec.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile(settingsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), settingsHeading)
	_, after, more := strings.Cut(rest, "\n## ")
	if !found || !more {
		t.Fatalf("%s: no %q before another heading", settingsFile, settingsHeading)
	}
	now := before + settingsHeading + settingsTable() + "\n## " + after
	if now == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s: the table of all settings is out of date: go test ./docs -run TestSettings -update", settingsFile)
	}
	if err := os.WriteFile(settingsFile, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settingsTable prints the table, with the sentence before it.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("\nThis is each setting of a job, with its name in config.yaml, in files of stored jobs, in the API and in `-o json`; `retry.max` is `retry: {max: ...}`. " +
		"A duration\nis a number and a unit, such as `90s`, `5m` or `2d`, in whole milliseconds. A setting that goes with another one is refused without it, unless it has its default value.\n\n")
	b.WriteString("| setting | value | default | goes with | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range spec.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, valueWords(s), code(byDefault(s)), withWords(s), s.Sentence)
	}
	return b.String()
}

// valueWords are the words and bounds of a setting's values.
func valueWords(s spec.Setting) string {
	words := map[spec.Kind]string{
		spec.Text: "text", spec.Name: "name", spec.Count: "number", spec.Duration: "duration", spec.Instant: "instant, RFC 3339", spec.Texts: "list of texts",
		spec.Names: "name, or list of names", spec.Labels: "mapping of texts", spec.JSON: "JSON", spec.Word: code(strings.Join(s.Words, "`, `")),
	}[s.Kind]
	switch bounds := s.Bounds(); {
	case bounds != "":
		words += ", " + bounds
	case s.Kind == spec.JSON:
		words += fmt.Sprintf(" of at most %d KiB", s.Max>>10)
	case s.Max > 0:
		words += fmt.Sprintf(", at most %d", s.Max)
	}
	return words
}

func byDefault(s spec.Setting) string {
	if s.Kind == spec.Word {
		return s.Words[0]
	}
	return s.Default
}

func withWords(s spec.Setting) string {
	var words []string
	if s.With != "" {
		words = append(words, code(s.With))
	} else if s.Handled {
		words = append(words, "stored jobs")
	}
	if s.Unscheduled {
		words = append(words, "`schedule`")
	}
	return strings.Join(words, ", ")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
