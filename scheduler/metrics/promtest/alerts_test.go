package promtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

const (
	alertsFile    = root + "/docs/deploy/prometheus/alerts.yaml"
	rulesTestFile = root + "/docs/deploy/prometheus/alerts_test.yaml"
	dashboardFile = root + "/docs/deploy/grafana/escapement.json"
)

// The shop's jobs: two of them never succeed.
const shopJobs = `
jobs:
  - {name: ok, schedule: "* * * * * *", exec: {command: ["true"]}}
  - {name: flaky, schedule: "* * * * * *", exec: {command: [sh, -c, 'test $((ESCAPEMENT_TICK_MS / 1000 % 2)) = 0']}}
  - {name: never-fails, schedule: "* * * * * *", exec: {command: ["false"]}}
  - {name: never-slow, schedule: "*/2 * * * * *", timeout: 300ms, exec: {command: [sleep, "30"]}}
  - {name: stopped, schedule: "* * * * * *", exec: {command: ["true"]}}
  - {name: late, schedule: "*/5 * * * * *", overlap: queue, ttl: 3s, labels: {zone: a}, exec: {command: [sleep, "8"]}}
  - {name: missed, schedule: "* * * * * *", overlap: queue, start_within: 1s, labels: {zone: a}, exec: {command: [sleep, "3"]}}
  - {name: nowhere, schedule: "* * * * * *", labels: {gpu: a100}, exec: {command: ["true"]}}
  - {name: by-hand, schedule: "0 0 1 1 *", overlap: allow, labels: {zone: b}, exec: {command: [sh, -c, 'sleep "$ESCAPEMENT_PAYLOAD"']}}
`

// A second installation has jobs of the same names: the jobs that fail in the shop succeed here,
// and the other way round.
const stagingJobs = `
jobs:
  - {name: ok, schedule: "* * * * * *", exec: {command: ["false"]}}
  - {name: never-fails, schedule: "* * * * * *", exec: {command: ["true"]}}
`

// stage is two installations, and a Prometheus that scrapes them as one in Kubernetes would.
type stage struct {
	program string
	redis   map[string]*redistest.Server // by installation
	nodes   map[string]*process          // by instance
	addrs   map[string]string            // of nodes
	dir     string
}

func (s *stage) node(t *testing.T, installation, name, jobs string) {
	t.Helper()
	if s.addrs[name] == "" {
		s.addrs[name] = freeAddr(t)
	}
	config := fmt.Sprintf("redis: {url: \"redis://%s\"}\nnode: {name: %s, labels: {zone: %s}, max_running: 8}\nhttp: {listen: %q, metrics_histograms: job}\n%s",
		s.redis[installation].Addr(), name, name, s.addrs[name], jobs)
	file := write(t, filepath.Join(s.dir, name+".yaml"), config)
	s.nodes[name] = start(t, nil, s.program, "run", "--config", file)
}

// call runs the command line against the shop's Redis.
func (s *stage) call(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, append(args, "--redis", "redis://"+s.redis["shop"].Addr())...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("escapement %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// target is the scrape of one node, with the labels that discovery in Kubernetes and the Prometheus
// Operator add.
func (s *stage) target(installation, name string) string {
	return fmt.Sprintf(`
      - targets: [%q]
        labels: {job: escapement, namespace: %s, instance: %s, node: machine-1, pod: escapement-%s, service: escapement, container: escapement, endpoint: http}`,
		s.addrs[name], installation, name, name)
}

// faster is a copy of the alert rules in which only the waits are shorter: `for` by 60, the age of
// a last success from 26 hours to 30 s.
func faster(t *testing.T, rules string) string {
	t.Helper()
	changed := 0
	rules = regexp.MustCompile(`(?m)^( +for: )(\w+)$`).ReplaceAllStringFunc(rules, func(line string) string {
		name, value, _ := strings.Cut(line, ": ")
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		changed++
		return fmt.Sprintf("%s: %dms", name, max(d/60, time.Second).Milliseconds())
	})
	short := strings.Replace(rules, "> 26 * 3600", "> 30", 1)
	if changed < 10 || short == rules {
		t.Fatalf("%d waits were made shorter, and the age of a last success: %t", changed, short != rules)
	}
	return short
}

// alertsOf names what fires, as "JobFailing shop never-fails": without the prefix, and with the
// installation and what the alert is about.
func alertsOf(firing []labels) (list []string) {
	for _, l := range firing {
		about := []string{strings.TrimPrefix(l["alertname"], "Escapement"), l["namespace"]}
		for _, name := range []string{"escapement_job", "instance"} {
			if l[name] != "" {
				about = append(about, l[name])
			}
		}
		list = append(list, strings.Join(about, " "))
	}
	slices.Sort(list)
	return list
}

// phase awaits the alerts wanted. may are alerts that a phase can bring too; any other is a fault
// at once.
func (p prom) phase(t *testing.T, name string, want, may []string) {
	t.Helper()
	await(t, name, func() (bool, string) {
		got := alertsOf(p.firing(t))
		for _, alert := range got {
			if !slices.Contains(want, alert) && !slices.Contains(may, alert) {
				t.Fatalf("%s: %q fires; expected are %q, possible %q", name, alert, want, may)
			}
		}
		for _, alert := range want {
			if !slices.Contains(got, alert) {
				return false, fmt.Sprintf("%q does not fire: %q", alert, got)
			}
		}
		return true, ""
	})
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{program: build(t), redis: map[string]*redistest.Server{}, nodes: map[string]*process{}, addrs: map[string]string{}, dir: t.TempDir()}
	s.redis["shop"], s.redis["staging"] = redistest.Start(t), redistest.Start(t)
	s.node(t, "shop", "a", shopJobs)
	s.node(t, "shop", "b", shopJobs)
	s.node(t, "staging", "c", stagingJobs)
	return s
}

// Each alert fires for the job, the node or the installation that it is about, and for no other;
// each panel has one series a job.
func TestAlertsAndPanels(t *testing.T) {
	s := newStage(t)
	rules := write(t, filepath.Join(s.dir, "rules.yaml"), faster(t, read(t, alertsFile)))
	const every = "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}\n"
	first := startProm(t, every+fmt.Sprintf("rule_files: [%q]\nscrape_configs:\n  - job_name: pods\n    static_configs:%s%s%s\n",
		rules, s.target("shop", "a"), s.target("shop", "b"), s.target("staging", "c")))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(first.url, "http://"))
	second := startProm(t, every+fmt.Sprintf(`rule_files: [%q]
scrape_configs:
  - job_name: federate
    honor_labels: true
    metrics_path: /federate
    params: {"match[]": ['{__name__=~"escapement_.+"}']}
    static_configs: [{targets: ["127.0.0.1:%s"]}]
`, rules, port))

	for _, p := range []prom{first, second} {
		await(t, "three nodes are scraped", func() (bool, string) { // before that, no node is ready
			ready, firing := p.query(t, "escapement_node_ready == 1"), alertsOf(p.firing(t))
			return len(ready) == 3 && !slices.Contains(firing, "NoNodeReady "), fmt.Sprint(ready, firing)
		})
	}
	s.call(t, "jobs", "run", "by-hand", "--payload", "0", "--wait")
	s.call(t, "jobs", "pause", "stopped", "--reason", "forgotten")
	steady := []string{
		"JobFailing shop never-fails", "JobFailing shop never-slow", "JobFailing staging ok",
		"JobNotSucceeded shop by-hand", "JobNotSucceeded shop stopped", "JobsWithoutNode shop",
		"RunsLate shop late", "TicksMissed shop missed",
	}
	first.phase(t, "what never succeeds", steady, nil)
	second.phase(t, "the same by federation", steady, nil)
	checkLabels(t, first)
	checkLabels(t, second)
	checkPanels(t, first)

	s.call(t, "nodes", "drain", "b", "--reason", "test")
	drained := append(steady, "NodeNotReady shop b")
	first.phase(t, "a drained node", drained, nil)
	s.call(t, "nodes", "resume", "b")
	await(t, "the drained node works again", func() (bool, string) {
		got := alertsOf(first.firing(t))
		return slices.Equal(got, steady), fmt.Sprintf("%q", got)
	})

	for range 8 {
		s.call(t, "jobs", "run", "by-hand", "--payload", "40")
	}
	full := append(steady, "SlotsFull shop b")
	first.phase(t, "a node without a slot", full, nil)
	s.nodes["b"].kill()
	killed := append(steady, "RunsAbandoned shop by-hand")
	more := []string{"SlotsFull shop b"}
	for _, job := range []string{"by-hand", "stopped", "ok", "flaky"} { // successes that b recorded; a reads them within ten minutes
		alert := "JobNotSucceeded shop " + job
		killed = slices.DeleteFunc(killed, func(wanted string) bool { return wanted == alert })
		more = append(more, alert)
	}
	// What ran on b in the moment of its death is abandoned too.
	for _, job := range []string{"ok", "flaky", "never-fails", "never-slow"} {
		more = append(more, "RunsAbandoned shop "+job)
	}
	first.phase(t, "a killed node", killed, more)

	if err := s.redis["shop"].Pause(); err != nil {
		t.Fatal(err)
	}
	more = append(more, "NodeNotReady shop a", "SlotsFull shop a", "RedisSlow shop", "LeasesLost shop a", "JobNotSucceeded shop late", "JobNotSucceeded shop missed")
	first.phase(t, "a Redis that stands still", append(killed, "RedisDown shop", "NoNodeReady shop", "LeasesLost shop a"), more)
	s.nodes["a"].kill()
	s.nodes["c"].kill()
	first.phase(t, "no node at all", []string{"NoNodeReady shop", "NoNodeReady staging"}, append(append(more, killed...), "RedisDown shop"))
}

// checkLabels: no label was renamed, and the variables of the dashboard have their values.
func checkLabels(t *testing.T, p prom) {
	t.Helper()
	for _, label := range p.strings(t, "/api/v1/labels") {
		if strings.HasPrefix(label, "exported_") {
			t.Errorf("a scrape made the label %s", label)
		}
	}
	jobs := p.strings(t, `/api/v1/label/escapement_job/values?match[]=escapement_ticks_total{namespace="shop"}`)
	if len(jobs) != 9 {
		t.Errorf("values of escapement_job: %q", jobs)
	}
}

// checkPanels runs every query of the dashboard, for the shop.
func checkPanels(t *testing.T, p prom) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$namespace", "shop", "$installation", "escapement", "$instance", ".*", "$escapement_job", ".*",
		"$__rate_interval", "20s", "$__range", "1h")
	ran := []string{"flaky", "late", "missed", "never-fails", "never-slow", "ok"}
	want := map[string][]string{ // the jobs of panels by job
		"Longest without a success": {"by-hand", "flaky", "late", "missed", "ok", "stopped"},
		"Failures by job":           {"flaky", "never-fails", "never-slow"},
		"Lag, 99th percentile":      ran, "Duration, mean": ran, "Duration, 95th percentile": ran,
	}
	byJob := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			var jobs, legends []string
			for _, s := range p.query(t, fill.Replace(target.Expr)) {
				if text, _ := s.Value[1].(string); text == "NaN" {
					continue // a job that did not run lately: Grafana draws nothing
				}
				if job := s.Metric["escapement_job"]; job != "" {
					jobs = append(jobs, job)
				}
				legends = append(legends, legend(target.LegendFormat, s.Metric))
			}
			slices.Sort(jobs)
			if of, named := want[panel.Title]; named {
				byJob++
				if !slices.Equal(jobs, of) {
					t.Errorf("panel %q has series of %q, want one of each of %q", panel.Title, jobs, of)
				}
			} else if len(jobs) > 0 {
				t.Errorf("panel %q is by job, and not in this test", panel.Title)
			}
			if slices.Sort(legends); panel.Type == "timeseries" && len(slices.Compact(slices.Clone(legends))) != len(legends) {
				t.Errorf("panel %q has several series of one name: %q", panel.Title, legends)
			}
			if len(legends) == 0 && panel.Title != "Jobs not claimed" {
				t.Errorf("panel %q is empty: %s", panel.Title, target.Expr)
			}
		}
	}
	if byJob != len(want) {
		t.Errorf("%d queries of panels by job, want those of %q", byJob, slices.Sorted(maps.Keys(want)))
	}
	checkStat(t, p, fill)
}

// checkStat: the first number of the night counts the shop's nodes alone.
func checkStat(t *testing.T, p prom, fill *strings.Replacer) {
	t.Helper()
	got := p.query(t, fill.Replace(`sum(escapement_node_ready{namespace="$namespace",job="$installation",instance=~"$instance"}) or vector(0)`))
	if len(got) != 1 {
		t.Fatalf("ready nodes: %v", got)
	}
	text, _ := got[0].Value[1].(string)
	if n, err := strconv.Atoi(text); err != nil || n != 2 {
		t.Errorf("%s nodes are ready, want 2", text)
	}
}

// legend is the name of a series as Grafana shows it.
func legend(format string, of labels) string {
	if format == "" {
		return fmt.Sprint(of)
	}
	return regexp.MustCompile(`{{ *(\w+) *}}`).ReplaceAllStringFunc(format, func(name string) string { return of[strings.Trim(name, "{} ")] })
}

// Prometheus takes the rules and the dashboard's queries, and the rules raise what their tests
// expect.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var queries []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries = append(queries, rule{"dashboard:query", strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(target.Expr)})
		}
	}
	if len(queries) < 15 {
		t.Fatalf("%d queries in the dashboard", len(queries))
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": queries}}}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(t.TempDir(), "dashboard.yaml"), string(text))
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", alertsFile}, {"test", "rules", rulesTestFile}, {"check", "rules", "--lint=none", file},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
