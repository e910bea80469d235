package schedtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// Scenario is a timetable: a file of events, and below a line --- the history that must result, row
// by row. testdata/scenarios/README.md has the words. Put your own jobs into one:
//
//	schedtest.Scenario{File: "testdata/report.txt", Jobs: []jobs.Job{report}}.Run(t)
//
// with a file such as this:
//
//	# A report whose node dies in the middle is made once more.
//	for 11m
//	nodes 2
//	job report "*/5 * * * *" on_crash=rerun
//	when after-start from=+4m50s crash for=10s
//	---
//	report +5m abandoned (lease lapsed)
//	report +5m succeeded attempt 2 by rerun late 5s
//	report +10m succeeded
//	report next +15m
type Scenario struct {
	File string
	// Jobs are jobs that the file may name. The file overrides their settings, and their functions
	// where it has lines of its own for a job's function. Any other job of the file is made from
	// the file alone.
	Jobs []jobs.Job
	// Seed gives other latencies than the file's; the history must be the same. 0: the file's, or
	// 1.
	Seed uint64
	// Rewrite writes the resulting history below the line, in place of comparing. Read the
	// difference before you keep it.
	Rewrite bool
}

// Run plays the scenario in a bubble of its own. It fails the test when the history differs, when a
// promise was broken, or when a fault of the file never struck.
func (s Scenario) Run(t *testing.T) Result {
	t.Helper()
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseScenario(s.File, string(text), s.Jobs...)
	if err != nil {
		t.Fatal(err)
	}
	if s.Seed != 0 {
		parsed.plan.Seed = s.Seed
	}
	p := parsed.play(t)
	for _, what := range p.broken {
		t.Error(what)
	}
	if s.Rewrite {
		if err := os.WriteFile(s.File, []byte(parsed.rewritten(p.got)), 0o600); err != nil {
			t.Fatal(err)
		}
		return p.result
	}
	if d := diff(parsed.want, p.got, parsed.wantAt, s.File); d != "" {
		t.Errorf("the history is another one; if it is right, set Rewrite:\n%s\n%s", d, p.result)
	}
	return p.result
}

// rewritten is the file with another history.
func (s *timetable) rewritten(got []string) string {
	return s.above + "\n---\n" + strings.Join(got, "\n") + "\n"
}

// play plays a scenario in a bubble of its own.
func (s *timetable) play(t *testing.T) *played {
	t.Helper()
	p := &played{scenario: s, unique: make(map[string]string)}
	plan := s.plan
	plan.acts, plan.last = p.acts(), p.read
	plan.For -= claim.AheadMax // a tick at the end belongs to the time behind it, whatever the delays of its claim
	p.result = Play(t, plan)
	for _, f := range p.result.Findings {
		p.broken = append(p.broken, f.String())
	}
	for _, f := range p.result.Idle {
		p.broken = append(p.broken, fmt.Sprintf("this never struck: %s", f))
	}
	return p
}

// diff compares two histories, ignoring the spacing of words, and shows where they differ; "" when
// they do not.
func diff(want, got []string, at int, file string) string {
	words := func(lines []string) []string {
		var all []string
		for _, line := range lines {
			if w := strings.Join(strings.Fields(line), " "); w != "" {
				all = append(all, w)
			}
		}
		return all
	}
	a, b := words(want), words(got)
	if slices.Equal(a, b) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s:%d: wanted (-) and came (+)\n", file, at)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			fmt.Fprintf(&out, "  %s\n", a[0])
			a, b = a[1:], b[1:]
		case len(a) > 0 && !slices.Contains(b, a[0]):
			fmt.Fprintf(&out, "- %s\n", a[0])
			a = a[1:]
		case len(b) > 0 && !slices.Contains(a, b[0]):
			fmt.Fprintf(&out, "+ %s\n", b[0])
			b = b[1:]
		case len(a) > 0:
			fmt.Fprintf(&out, "- %s\n", a[0])
			a = a[1:]
		default:
			fmt.Fprintf(&out, "+ %s\n", b[0])
			b = b[1:]
		}
	}
	return out.String()
}

// split cuts a line into words; "several of them" are one, also behind key=.
func split(line string) ([]string, error) {
	var words []string
	rest := strings.TrimSpace(line)
	for rest != "" {
		end, quoted := len(rest), false
		for i := range len(rest) {
			if rest[i] == '"' {
				quoted = !quoted
			}
			if rest[i] == ' ' && !quoted {
				end = i
				break
			}
		}
		if end == len(rest) && quoted {
			return nil, fmt.Errorf("a quotation mark is missing in %q", line)
		}
		words = append(words, strings.ReplaceAll(rest[:end], `"`, ""))
		rest = strings.TrimSpace(rest[end:])
	}
	return words, nil
}

// options takes the words of a line one after another and collects their errors.
type options struct {
	words []string
	errs  []error
}

func (o *options) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf(format, args...))
}

// done returns the errors; words that were not taken are errors too.
func (o *options) done() error {
	for _, w := range o.words {
		o.bad("%q does not belong there", w)
	}
	return errors.Join(o.errs...)
}

// next takes the first word that is no setting.
func (o *options) next(what string) string {
	for i, w := range o.words {
		if !setting(w) {
			o.words = append(append([]string(nil), o.words[:i]...), o.words[i+1:]...)
			return w
		}
	}
	o.bad("%s is missing", what)
	return ""
}

// plain is how many of the remaining words are no settings.
func (o *options) plain() int {
	n := 0
	for _, w := range o.words {
		if !setting(w) {
			n++
		}
	}
	return n
}

// setting reports whether a word has the form key=value.
func setting(word string) bool {
	key, _, found := strings.Cut(word, "=")
	return found && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// text takes key=value.
func (o *options) text(key string, into *string) bool {
	for i, w := range o.words {
		if value, found := strings.CutPrefix(w, key+"="); found {
			*into = value
			o.words = append(append([]string(nil), o.words[:i]...), o.words[i+1:]...)
			return true
		}
	}
	return false
}

// labels takes key=name:value[,name:value ...]; nil when it is not there.
func (o *options) labels(key string) map[string]string {
	var text string
	if !o.text(key, &text) {
		return nil
	}
	all := make(map[string]string)
	for _, word := range strings.Split(text, ",") {
		name, value, found := strings.Cut(word, ":")
		if !found {
			o.bad("%s=%s: not labels such as gpu:yes,zone:a", key, text)
		}
		all[name] = value
	}
	return all
}

func (o *options) count(key string, into *int) {
	var text string
	if !o.text(key, &text) {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		o.bad("%s=%s: not a number", key, text)
	}
	*into = n
}

func (o *options) time(key string, into *time.Duration) bool {
	var text string
	if !o.text(key, &text) {
		return false
	}
	*into = o.duration(key+"=", text)
	return true
}

func (o *options) duration(before, text string) time.Duration {
	d, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
	if err != nil {
		o.bad("%s%s: not a time such as 90s, 1h30m or +10s", before, text)
	}
	return d
}

func (o *options) number() int64 {
	text := o.next("a number")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		o.bad("%q is not a number", text)
	}
	return n
}

func (o *options) span() time.Duration { return o.duration("", o.next("a time")) }
