package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/metrics"
)

const (
	page      = "../../docs/metrics.md"
	alerts    = "../../docs/deploy/prometheus/alerts.yaml"
	tests     = "../../docs/deploy/prometheus/alerts_test.yaml"
	dashboard = "../../docs/deploy/grafana/escapement.json"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// named are the metrics that a text names, without the endings of histograms and without labels.
func named(text string) (names []string) {
	for _, name := range regexp.MustCompile(`\bescapement_[a-z_]+`).FindAllString(text, -1) {
		for _, ending := range []string{"_bucket", "_count", "_sum"} {
			name = strings.TrimSuffix(name, ending)
		}
		if !slices.Contains(ownLabels, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Every metric that a rule or a panel names is there, and the page has them all.
func TestNamesInDocs(t *testing.T) {
	for _, file := range []string{page, alerts, tests, dashboard} {
		found := named(read(t, file))
		if len(found) < 5 {
			t.Errorf("%s names %v", file, found)
		}
		for _, name := range found {
			if !slices.Contains(metrics.Names(), name) {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
	for _, name := range metrics.Names() {
		if !strings.Contains(read(t, page), "| `"+name) {
			t.Errorf("%s has no row for %s", page, name)
		}
	}
}

// ownLabels are the labels of the program's series. A scrape's labels are not among them, because a
// scrape renames them.
var ownLabels = []string{"answer", metrics.JobLabel, metrics.NodeLabel, "master", "outcome", "state", "verb"}

// scrapeLabels are the labels of a target by which rules and panels keep installations and nodes apart.
var scrapeLabels = []string{"cluster", "instance", "job", "namespace"}

// Every label of a rule or a panel belongs to the program or to a scrape, and the rules that add up
// keep installations apart. Whether Prometheus answers their queries is tested by make alerts.
func TestLabelsInDocs(t *testing.T) {
	lists := regexp.MustCompile(`\b(by|on|ignoring|without|group_left) ?\(([a-z_, ]*)\)`)
	single := regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)\\?"|\{\{(\w+)\}\}|\$labels\.(\w+)`)
	for _, file := range []string{alerts, dashboard, page} {
		text := regexp.MustCompile(`"datasource": \{[^}]*\}`).ReplaceAllString(read(t, file), "")
		var found []string
		for _, m := range lists.FindAllStringSubmatch(text, -1) {
			all := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
			found = append(found, all...)
			if installation := []string{"cluster", "namespace", "job"}; file == alerts && (len(all) < 3 || !slices.Equal(all[:3], installation)) {
				t.Errorf("%s: %q does not begin with %v", file, m[0], installation)
			}
		}
		for _, m := range single.FindAllStringSubmatch(text, -1) {
			found = append(found, m[1]+m[2]+m[3])
		}
		if !slices.Contains(found, metrics.JobLabel) {
			t.Errorf("%s names labels %v", file, found)
		}
		for _, label := range found {
			if !slices.Contains(ownLabels, label) && !slices.Contains(scrapeLabels, label) && label != "le" {
				t.Errorf("%s: no series has a label %s", file, label)
			}
		}
	}
}

// Every alert has its section of the page and links to it; every section has its alert.
func TestRunbook(t *testing.T) {
	of := func(pattern, text string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}
	rules := read(t, alerts)
	all := of(`(?m)^ +- alert: (\w+)$`, rules)
	if sections := of(`(?m)^### (Escapement\w+)$`, read(t, page)); len(all) < 10 || !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(sections))) {
		t.Errorf("alerts %v, sections %v", all, sections)
	}
	var want []string
	for _, alert := range all {
		want = append(want, strings.ToLower(alert))
	}
	if links := of(`(?m)runbook_url: .*/docs/metrics\.md#(\w+)$`, rules); !slices.Equal(links, want) {
		t.Errorf("links %v, want %v", links, want)
	}
}
