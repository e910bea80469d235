package opshttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// world is a node with jobs, and a server of its namespace.
type world struct {
	t      testing.TB
	server *Server
	http   *httptest.Server
	client *ops.Client
	redis  *redistest.Embedded
	raw    *redis.Client
	locker *locking.Locker
	schema *jsonschema.Compiler
}

// begin starts a node, and a server of its namespace.
func begin(t testing.TB, cfg Config) *world {
	t.Helper()
	server, client := redistest.StartEmbedded(t)
	client.Set(t.Context(), "{escapement}:odd", "", 0) // for problems
	reg := jobs.NewRegistry()
	if err := reg.Handle("mail", func(context.Context, *jobs.Run) error { return nil }); err != nil {
		t.Fatal(err)
	}
	const yearly = "0 0 1 1 *"
	for _, j := range []jobs.Job{
		{Name: "each-second", Schedule: "* * * * * *", Func: func(_ context.Context, r *jobs.Run) error {
			_, err := io.WriteString(r.Output(), "said\n")
			return err
		}},
		{Name: "fails/often", Schedule: yearly, Func: func(context.Context, *jobs.Run) error { return errors.New("no luck") }},
		{Name: "slow", Schedule: yearly, TTL: 3 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		{Name: "shards", Schedule: "0 3 * * *", TimeZone: "Europe/Berlin", Shards: 2, Func: func(context.Context, *jobs.Run) error { return nil }},
		{Name: "follows", After: []string{"fails/often"}, Func: func(context.Context, *jobs.Run) error { return nil }},
	} {
		reg.MustAdd(j)
	}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1", Revision: "1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	admin, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: admin, redis: server, raw: client, server: New(admin, cfg), locker: redislock.New(client, redislock.Config{}), schema: jsonschema.NewCompiler()}
	t.Cleanup(w.locker.Close)
	feed := make(chan error, 1)
	go func() { feed <- w.server.Run(ctx) }()
	t.Cleanup(func() {
		if err := <-feed; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	w.http = httptest.NewServer(w.server)
	t.Cleanup(func() {
		w.http.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(description))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.schema.AddResource("api", doc); err != nil {
		t.Fatal(err)
	}
	w.eventually("the node is ready", func() bool { return node.Ready() == nil })
	return w
}

// eventually looks until something holds; the world is real.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(end) {
			w.t.Fatal("not so after 20 s: " + what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// ask makes a request and checks the answer by openapi.json.
func (w *world) ask(method, path, body string, header ...string) (int, []byte, http.Header) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.conforms(method, path, resp, got)
	return resp.StatusCode, got, resp.Header
}

// conforms checks an answer by openapi.json.
func (w *world) conforms(method, path string, resp *http.Response, body []byte) {
	w.t.Helper()
	at := "/components/schemas/ProblemDetails"
	if resp.StatusCode < 300 {
		r := w.routeOf(method, path)
		if r == nil || r.Path == "runs/{run}/output" || resp.StatusCode == http.StatusNoContent {
			return
		}
		escape := strings.NewReplacer("~", "~0", "/", "~1").Replace
		at = "/paths/" + escape("/"+r.Path) + "/" + strings.ToLower(method) + "/responses/200/content/" + escape("application/json") + "/schema"
	} else if resp.StatusCode == http.StatusNotModified {
		return
	} else if resp.Header.Get("Content-Type") != "application/problem+json" {
		w.t.Errorf("%s %s: %d, not as problem details: %s", method, path, resp.StatusCode, body)
		return
	}
	s, err := w.schema.Compile("api#" + at)
	if err != nil {
		w.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = s.Validate(value)
	}
	if err != nil {
		w.t.Errorf("%s %s: %d %s: %v", method, path, resp.StatusCode, body, err)
	}
}

// routeOf is the route of a path.
func (w *world) routeOf(method, path string) *route {
	mux, all := http.NewServeMux(), routes()
	for _, r := range all {
		mux.Handle(r.Method+" "+Prefix+r.Path, http.NotFoundHandler())
	}
	req := httptest.NewRequestWithContext(context.Background(), method, path, nil)
	_, pattern := mux.Handler(req)
	for i, r := range all {
		if pattern == r.Method+" "+Prefix+r.Path {
			return &all[i]
		}
	}
	return nil
}

// TestContract makes a request for each route, and for the errors that it can meet.
func TestContract(t *testing.T) {
	w := begin(t, Config{Version: "1.2.3", Node: "a1"})
	id := func(body []byte) string {
		var of ops.Asked
		if err := json.Unmarshal(body, &of); err != nil || of.Run == "" {
			t.Fatalf("%s: %v", body, err)
		}
		return of.Run
	}
	lease, err := w.locker.Acquire(t.Context(), "order:42", locking.Options{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.Background()) }) // it was taken away: the keeper ends
	token := string(must(json.Marshal(lease.Token())))
	_, asked, _ := w.ask("POST", "/api/v1/jobs/fails%2Foften/runs", `{"payload": {"a": 1}, "unique": "k"}`)
	failed := id(asked)
	if _, again, _ := w.ask("POST", "/api/v1/jobs/fails%2Foften/runs", `{}`, "Idempotency-Key", "k"); id(again) != failed {
		t.Errorf("%s, want %s", again, failed)
	}
	_, asked, _ = w.ask("POST", "/api/v1/jobs/slow/runs", "")
	slow := id(asked)
	for _, tt := range []struct {
		ask, body string
		status    int
		has       string
	}{
		{"GET me", "", 200, `"role":"operator"`},
		{"GET namespace", "", 200, `"closed":""`},
		{"GET runs/" + failed + "?wait_ms=8000", "", 200, `"outcome":"failed"`},
		{"GET runs/" + slow + "?wait_ms=10", "", 200, `"outcome":"running"`},
		{"GET runs/" + failed + "/output", "", 200, ""},
		{"GET runs/nope", "", 404, "unknown_run"},
		{"GET overview", "", 200, `"failing":{"count":1,"first":["fails/often"]}`},
		{"GET overview?x=1", "", 400, "x"},
		{"GET ends?job=fails%2Foften&job=nope&each=3", "", 200, `"nope":[]`},
		{"GET ends?job=fails%2Foften", "", 200, `"outcome":"failed"`},
		{"GET ends?each=201", "", 400, "each"},
		{"GET ends?job=a" + strings.Repeat("&job=j", 200), "", 409, "refused"},
		{"GET jobs", "", 200, `"name":"follows"`},
		{"GET jobs?q=SLO&limit=1", "", 200, `"name":"slow"`},
		{"GET job-names", "", 200, `"slow"`},
		{"GET jobs?limit=0", "", 400, "limit"},
		{"GET jobs?lmit=5", "", 400, "lmit"},
		{"GET jobs/fails%2Foften", "", 200, `"fails/often"`},
		{"GET jobs/nope", "", 404, "unknown_job"},
		{"GET jobs/shards/ticks?from=2026-03-27T12:00:00Z&limit=3", "", 200, `"local":"2026-03-29T03:00:00+02:00"`},
		{"GET jobs/shards/ticks?from=now", "", 400, "from"},
		{"POST jobs/slow/pause", `{}`, 409, "reason"},
		{"POST jobs/slow/pause", `{"reason": "stock-taking", "until": "2027-01-01T00:00:00Z"}`, 204, ""},
		{"POST jobs/slow/pause", `{"reason": 5}`, 400, "bad_request"},
		{"POST jobs/slow/pause", `{"raeson": "x"}`, 400, "raeson"},
		{"POST jobs/slow/resume", `{"reason": "done"}`, 204, ""},
		{"POST jobs/slow/rewind", `{}`, 400, "to"},
		{"POST jobs/shards/rewind", `{"to": "2000-01-01T00:00:00Z"}`, 409, "refused"},
		{"POST jobs/slow/backfill", `{"from": "2026-01-01T00:00:00Z"}`, 400, "to is missing"},
		{"POST jobs/slow/backfill", `{"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}`, 409, "the earlier end"},
		{"POST jobs/shards/backfill", `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z", "dry_run": true}`, 200, `"ticks":2`},
		{"DELETE jobs/shards/backfill", "", 409, "none is under way"},
		{"GET backfills?job=shards", "", 200, `[]`},
		{"GET backfills?job=nope", "", 404, "unknown_job"},
		{"DELETE jobs/slow", "", 409, "refused"},
		{"DELETE jobs/nope", "", 404, "unknown_job"},
		{"PUT jobs/tenant%2F7", `{"handler": "mail", "schedule": "@hourly", "payload": {"to": "x"}, "retry": {"max": 2}}`, 200, `"version":"2`},
		{"PUT jobs/tenant%2F7?new=true", `{"handler": "mail", "schedule": "@hourly"}`, 409, "refused"},
		{"PUT jobs/tenant%2F7?was=2020-01-01T00:00:00Z", `{"handler": "mail", "schedule": "@hourly"}`, 409, "refused"},
		{"PUT jobs/tenant%2F8?dry_run=true", `{"handler": "mail", "schedule": "@hourly"}`, 200, `"schedule":"@hourly"`},
		{"PUT jobs/tenant%2F8?new=yes", `{}`, 400, "new"},
		{"PUT jobs/tenant%2F8", `{"name": "other"}`, 400, "other"},
		{"PUT jobs/tenant%2F8", `{"handler": "mail", "overlap": "sometimes"}`, 422, "overlap"},
		{"PUT jobs/tenant%2F8", `{"handler": "post", "schedule": "@hourly"}`, 422, "declared are mail"},
		{"PUT jobs/tenant%2F8", `{"handler": "post", "schedule": "@hourly"}`, 422, `"faults":[{"field":"handler","text":"no node has declared`},
		{"PUT jobs/tenant%2F8", `{"handler": "mail", "schedule": "x", "retry": {"max": 200}}`, 422, `{"field":"retry.max","text":"200 is outside 0 to 100"}]`},
		{"PUT jobs/tenant%2F8", `{"handler": "mail", "overlap": "sometimes"}`, 422, `"faults":[{"field":"overlap","text":"\"sometimes\" is not one of skip, queue`},
		{"PUT jobs/tenant%2F8", `{"handler": "mail", "timeout": 3}`, 422, `"faults":[{"field":"timeout","text":"3 has no unit; did you mean 3s"},{"field":"schedule",`},
		{"PUT jobs/tenant%2F8", `{"handler": "mail", "schedule": "@hourly", "ttl_ms": 15000}`, 422, `"faults":[{"field":"ttl_ms","text":"unknown key; a duration has its unit: write ttl: 15s"}]`},
		{"PUT jobs/tenant%2F8", `[1]`, 422, "want a section of settings, found a list"},
		{"PUT jobs/tenant%2F8", `{"handlr": "mail", "schedule": "x", "ttl": "2s", "catch_up": 7, "catch_up_max": 3, "retry": {"max": 200}}`, 422, `"faults":[{"field":"handlr","text":"unknown key; did you mean handler"},` +
			`{"field":"catch_up","text":"\"7\" is not one of latest, all, none"},{"field":"handler","text":"is missing; a stored job names the handler that its runs call"},` +
			`{"field":"schedule","text":"schedule \"x\": has 1 fields; 5 are needed, or 6 with seconds first"},` +
			`{"field":"ttl","text":"2s is outside 3s to 1h; leave it out for 15s"},{"field":"retry.max","text":"200 is outside 0 to 100"}]`},
		{"PUT jobs/tenant%2F8", ``, 422, "handler: is missing"},
		{"GET handlers", "", 200, `[{"name":"mail","shape":""}]`},
		{"GET handlers?q=a", "", 400, "q"},
		{"GET preview?schedule=30+2+*+*+*&time_zone=Europe%2FBerlin", "", 200, `gap: the clock goes from 02:00 to 03:00; this tick stands in`},
		{"GET preview?schedule=H+H+*+*+*&name=tenant%2F7&limit=1", "", 200, `"faults":[]`},
		{"GET preview?schedule=61+*+*+*+*&time_zone=Mars", "", 200, `"faults":[{"field":"time_zone"`},
		{"GET preview?schedule=@daily&only=2020-02-30", "", 200, `"faults":[{"field":"only[0]"`},
		{"GET preview?limit=21", "", 400, "20"},
		{"GET preview?schedule=@daily&jitter=1h30m", "", 200, `"faults":[]`},
		{"GET preview?jitter=90", "", 400, "90 has no unit; did you mean 90s"},
		{"GET preview?jitter_ms=90000", "", 400, "write jitter=1m30s"},
		{"GET preview?jitter=30000&b=1&a=1", "", 400, `jitter: 30000 has no unit; did you mean 30s; there is no parameter \"a\" here; there is no parameter \"b\" here`},
		{"GET stored-jobs", "", 200, `"tenant/7"`},
		{"GET graph", "", 200, `"after":["fails/often"],"when":"succeeded"`},
		{"GET graph?q=a", "", 400, "q"},
		{"GET stored-jobs?name=tenant%2F8", "", 404, "unknown_job"},
		{"DELETE jobs/tenant%2F7?was=2020-01-01T00:00:00Z", "", 409, "refused"},
		{"DELETE jobs/tenant%2F7", "", 204, ""},
		{"POST jobs/slow/runs", `{"at": "1600-01-01T00:00:00Z"}`, 409, "refused"},
		{"POST runs/" + slow + "/cancel", `{"reason": "enough"}`, 200, `"did":"told"`},
		{"GET runs/" + slow + "?wait_ms=8000", "", 200, `"outcome":"cancelled"`},
		{"POST runs/" + slow + "/cancel", "", 200, ``},
		{"POST runs/" + failed + "/cancel", "", 409, "refused"},
		{"POST runs/" + failed + "/rerun", "", 200, `"run"`},
		{"POST runs/nope/rerun", "", 404, "unknown_run"},
		{"GET runs?job=fails%2Foften&outcome=failed&since=2020-01-01T00:00:00Z", "", 200, `"no luck"`},
		{"GET runs?outcome=odd", "", 400, "bad_request"},
		{"GET nodes", "", 200, `"name":"a1"`},
		{"GET nodes?q=A", "", 200, `"name":"a1"`},
		{"GET nodes?q=b", "", 200, `[]`},
		{"GET generations", "", 200, `"active"`},
		{"GET generations?q=nope", "", 200, `[]`},
		{"POST generations/-/promote", `{"reason": "way back"}`, 200, `"epoch"`},
		{"POST generations/green/promote", "", 409, "refused"},
		{"POST nodes/a1/drain", `{"reason": "new disk"}`, 204, ""},
		{"GET drains", "", 200, `"new disk"`},
		{"GET nodes/a1/rests", "", 200, `"rests"`},
		{"POST nodes/a1/resume", "", 204, ""},
		{"POST nodes/b7/resume", "", 404, "unknown_node"},
		{"GET locks", "", 200, `"order:42"`},
		{"GET locks?q=ORDER&limit=1", "", 200, `"order:42"`},
		{"GET locks?q=invoice", "", 200, `[]`},
		{"GET locks/order:42", "", 200, token},
		{"GET locks/nope", "", 404, "unknown_lock"},
		{"POST locks/order:42/release", `{"token": "1"}`, 409, "does not hold"},
		{"POST locks/order:42/release", `{"token": "x"}`, 400, "token"},
		{"POST locks/order:42/release", `{"token": ` + quoted(token) + `, "force": true, "reason": "stuck"}`, 200, `"did":"taken"`},
		{"GET verify?job=slow", "", 200, `"violations":[]`},
		{"GET problems", "", 200, `"key_unknown"`},
		{"GET problems?x=1", "", 400, "bad_request"},
		{"GET audit?who=ann", "", 200, `"locks release"`},
		{"GET audit?limit=1", "", 200, ""},
		{"GET audit?after=x", "", 409, "refused"},
		{"GET openapi.json", "", 200, `"openapi"`},
		{"GET nowhere", "", 404, "unknown_path"},
		{"PUT jobs", "", 405, "method_not_allowed"},
		{"POST jobs/slow/runs", `{"payload": "` + strings.Repeat("x", bodyMax) + `"}`, 413, "too_large"},
		{"POST jobs/slow/runs", `[]`, 400, "bad_request"},
		{"POST jobs/slow/runs", `{} {}`, 400, "bad_request"},
	} {
		method, path, _ := strings.Cut(tt.ask, " ")
		status, body, _ := w.ask(method, Prefix+path, tt.body, AuthorHeader, "ann")
		if status != tt.status || !bytes.Contains(body, []byte(tt.has)) {
			t.Errorf("%s %s: %d %.600s; want %d and %q", tt.ask, tt.body, status, body, tt.status, tt.has)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func quoted(s string) string { return `"` + s + `"` }

// TestPages reads a list page by page, and requests an unchanged page again.
func TestPages(t *testing.T) {
	w := begin(t, Config{})
	var names []string
	after := ""
	for {
		_, body, h := w.ask("GET", Prefix+"jobs?limit=2"+after, "")
		var some []ops.JobView
		if err := json.Unmarshal(body, &some); err != nil {
			t.Fatal(err)
		}
		for _, j := range some {
			names = append(names, j.Name)
		}
		link := h.Get("Link")
		if (link == "") != (h.Get(NextHeader) == "") {
			t.Errorf("Link is %q and %s is %q", link, NextHeader, h.Get(NextHeader))
		}
		if link == "" {
			break
		}
		_, q, _ := strings.Cut(link, "after=")
		q, _, _ = strings.Cut(q, "&")
		q, _, _ = strings.Cut(q, ">")
		after = "&after=" + q
	}
	if want := []string{"each-second", "fails/often", "follows", "shards", "slow"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	_, _, h := w.ask("GET", Prefix+"drains", "")
	if status, body, _ := w.ask("GET", Prefix+"drains", "", "If-None-Match", h.Get("ETag")); status != http.StatusNotModified || len(body) > 0 {
		t.Errorf("%d %s", status, body)
	}
}
