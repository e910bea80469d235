package page

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// The document, and the lines of it that enclose the figures.
const (
	document = "benchmarks.md"
	begin    = "<!-- figures: begin. make peers-docs writes what follows -->\n"
	end      = "<!-- figures: end -->\n"
	folder   = "benchmarks"   // of the figures
	raw      = "figures.json" // in it: each round
)

// Run writes the document again from the figures of an earlier run.
func Run(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("table", flag.ExitOnError)
	docs := flags.String("docs", "../../docs", "the folder of benchmarks.md")
	from := flags.String("json", "", "the figures (default benchmarks/figures.json in that folder)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from == "" {
		*from = filepath.Join(*docs, folder, raw)
	}
	run, err := figures.Read(*from)
	if err != nil {
		return err
	}
	return Update(*docs, run)
}

// Update writes the figures and the table into the folder of the documents.
func Update(docs string, run figures.Run) error {
	name := filepath.Join(docs, document)
	text, err := os.ReadFile(name) //nolint:gosec // G304: named on the command line
	if err != nil {
		return err
	}
	now, err := replace(string(text), Section(run))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	figures := filepath.Join(docs, folder)
	return errors.Join(
		os.MkdirAll(figures, 0o755), //nolint:gosec // G301: documents for everybody
		run.Write(filepath.Join(figures, raw)),
		os.WriteFile(name, []byte(now), 0o644), //nolint:gosec // G306: the same
	)
}

// replace puts a section between the markers of a text.
func replace(text, section string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		return "", fmt.Errorf("it lacks the line %q or, after it, %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + section + end + tail, nil
}

// Section is the part of benchmarks.md that a run fills.
func Section(run figures.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured on %s", run.When.Format("2006-01-02"))
	if run.Commit != "" {
		fmt.Fprintf(&b, " at commit %s", run.Commit)
	}
	m := run.Machine
	fmt.Fprintf(&b, ": %s, %d cores (%s), %.0f GiB of memory. Each measurement took %s, in %s. Versions: ",
		m.System, m.Cores, m.Processor, float64(m.MemoryMiB)/1024, many(run.Seconds, "second"), many(run.Rounds, "round"))
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(run.Versions)) {
		versions = append(versions, strings.TrimPrefix(name, "github.com/")+" "+run.Versions[name])
	}
	b.WriteString(strings.Join(versions, ", ") + ".")
	b.WriteString(disturbed(run))
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "%s\nEach round: [%s](%s/%s).\n\n### Where others are better\n\n", Table(run), raw, folder, raw)
	fmt.Fprintf(&b, "Figures that are better than Escapement's by a tenth or more, of those that ran at least half of the ticks:\n\n%s\n", Behind(run))
	return b.String()
}

// disturbed describes how other processes disturbed the measurements.
func disturbed(run figures.Run) string {
	rows := 0
	for _, r := range run.Rows {
		if run.Disturbed(r) {
			rows++
		}
	}
	if rows == 0 {
		return ""
	}
	text := fmt.Sprintf(" In %d of %s other processes took more than a tenth of all cores: these are left out where a contender has another round", rows, many(len(run.Rows), "measurement"))
	for _, s := range run.Summaries() {
		if s.Disturbed {
			return text + ", and marked with a star where it has none."
		}
	}
	return text + "."
}

// many is a number of things.
func many(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
