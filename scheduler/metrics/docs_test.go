package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
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

// named are the metrics that a text names, without the endings of histograms.
func named(text string) (names []string) {
	for _, name := range regexp.MustCompile(`\bescapement_[a-z_]+`).FindAllString(text, -1) {
		for _, ending := range []string{"_bucket", "_count", "_sum"} {
			name = strings.TrimSuffix(name, ending)
		}
		names = append(names, name)
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

// Prometheus takes the rules and the dashboard's queries, and the rules raise what their tests expect.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT CHECKED: alert rules and the dashboard's queries, because promtool is missing; install Debian's package prometheus")
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &board); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var queries []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(target.Expr)
			queries = append(queries, rule{"dashboard:query", expr})
		}
	}
	if len(queries) < 15 {
		t.Fatalf("%d queries in the dashboard", len(queries))
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml") // JSON is YAML
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": queries}}})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", alerts}, {"test", "rules", tests}, {"check", "rules", "--lint=none", file}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
