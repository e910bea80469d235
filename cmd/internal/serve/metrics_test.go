package serve

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// nodesOf is nodes of that configuration over the embedded Redis, not running.
func nodesOf(t *testing.T, several bool, text string, names ...string) *nodes {
	t.Helper()
	l, err := config.Load(config.Source{File: testkit.Write(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	return nodesOfLoaded(t, several, l, names...)
}

func nodesOfLoaded(t *testing.T, several bool, l *config.Loaded, names ...string) *nodes {
	t.Helper()
	server, _ := redistest.StartEmbedded(t)
	f := &nodes{several: several}
	for _, name := range names {
		client := server.Client()
		t.Cleanup(func() { _ = client.Close() })
		if err := f.add(endpoint{client, "test"}, endpoint{}, l, scheduler.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

const aJob = `
jobs:
  - {name: a, schedule: "@every 1m", exec: {command: ["true"]}}
  - {name: b, schedule: "@every 1m", exec: {command: ["true"]}}
`

// With open access, a page of another site learns only that a server listens, below a base path
// too.
func TestNamesOfOthersReadNothing(t *testing.T) {
	open, closed := nodesOf(t, false, aJob, "n").handler(config.HTTP{BasePath: "/ops"}), nodesOf(t, false, "http: {viewer_token: viewer-token}"+aJob, "n").handler(config.HTTP{})
	for _, path := range []string{"/metrics", "/readyz", "/version", "/", "/app.js", "/api/v1/jobs", "/ops/metrics", "/ops/", "/nowhere", "/healthz"} {
		r, w := httptest.NewRequestWithContext(t.Context(), "GET", "http://evil.example"+path, nil), httptest.NewRecorder()
		if open.ServeHTTP(w, r); (w.Code == 403) != (path != "/healthz") {
			t.Errorf("%s of evil.example: %d", path, w.Code)
		}
	}
	named := nodesOf(t, false, `http: {listen: "Own.example:8080", hosts: [Named.Example]}`+aJob, "n").handler(config.HTTP{})
	for host, want := range map[string]int{"own.example:8080": 200, "NAMED.example": 200, "evil.example": 403} {
		r, w := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/metrics", nil), httptest.NewRecorder()
		if named.ServeHTTP(w, r); w.Code != want {
			t.Errorf("metrics of %s: %d, want %d", host, w.Code, want)
		}
	}
	r, w := httptest.NewRequestWithContext(t.Context(), "GET", "http://any.example/version", nil), httptest.NewRecorder()
	if closed.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("with a token that is needed: %d", w.Code)
	}
}

// Where access is configured, only a viewer may read the metrics.
func TestMetricsAreGuarded(t *testing.T) {
	for _, tt := range []struct {
		config, token string
		code          int
	}{
		{"", "", 200},
		{"http: {viewer_token: viewer-token, operator_token: operator-token}", "", 401},
		{"http: {viewer_token: viewer-token}", "wrong-token", 401},
		{"http: {viewer_token: viewer-token}", "viewer-token", 200},
		{"http: {operator_token: operator-token}", "operator-token", 200},
	} {
		r, w := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil), httptest.NewRecorder()
		if r.Host = "localhost"; tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		nodesOf(t, false, tt.config+aJob, "n").handler(config.HTTP{}).ServeHTTP(w, r)
		if w.Code != tt.code || (tt.code == 200) != strings.Contains(w.Body.String(), "\nescapement_ticks_total{escapement_job=\"a\",outcome=\"failed\"} 0\n") {
			t.Errorf("%q with token %q: %d, want %d: %.200s", tt.config, tt.token, w.Code, tt.code, w.Body)
		}
	}
}

// In a process of several nodes each series has its node's name, and metrics_jobs bounds the
// series.
func TestMetricsOfSeveralNodes(t *testing.T) {
	for _, tt := range []struct {
		config string
		want   []string
		not    string
	}{
		{"", []string{`{escapement_job="a",escapement_node="dev-1",outcome="failed"} 0`, `{escapement_job="b",escapement_node="dev-2",outcome="lost"} 0`, `escapement_jobs{escapement_node="dev-2",state="all"} 2`, `escapement_run_lag_seconds_count{escapement_node="dev-2"} 0`}, `escapement_job=""`},
		{"http: {metrics_histograms: job}", []string{`escapement_run_lag_seconds_count{escapement_job="b",escapement_node="dev-2"} 0`}, `escapement_run_lag_seconds_count{escapement_node`},
		{"http: {metrics_jobs: 1}", []string{`{escapement_job="a",escapement_node="dev-1",outcome="failed"} 0`, `{escapement_job="",escapement_node="dev-2",outcome="failed"} 0`}, `escapement_job="b"`},
		{"http: {metrics_jobs: 0}", []string{`{escapement_job="",escapement_node="dev-1",outcome="failed"} 0`}, `escapement_job="a"`},
	} {
		w := httptest.NewRecorder()
		nodesOf(t, true, tt.config+aJob, "dev-1", "dev-2").handler(config.HTTP{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/metrics", nil))
		for _, want := range tt.want {
			if !strings.Contains(w.Body.String(), want+"\n") {
				t.Errorf("%q: %s is missing", tt.config, want)
			}
		}
		if strings.Contains(w.Body.String(), tt.not) {
			t.Errorf("%q: there are series with %s", tt.config, tt.not)
		}
	}
}
