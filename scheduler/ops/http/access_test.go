package opshttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// everyWay is an access with all kinds of credentials.
func everyWay() Access {
	return Access{
		Tokens: map[string]Identity{"operators-token": {"ci", ops.Operator}, "viewers-token": {"wall", ops.Viewer}},
		Users:  map[string]User{"ann": {"anns password", ops.Operator}, "bob": {"bobs password", ops.Viewer}},
		Header: "X-User", RoleHeader: "X-Role",
	}
}

// TestWhoMay: each route refuses users without its role, and requests without credentials.
func TestWhoMay(t *testing.T) {
	s := New(nil, Config{Access: everyWay()})
	ask := func(r *http.Request) int {
		reached := false
		w := httptest.NewRecorder()
		s.Guard(ops.Nobody, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })).ServeHTTP(w, r)
		if reached != (w.Code == http.StatusOK) {
			t.Errorf("%d, and the handler was reached: %v", w.Code, reached)
		}
		return w.Code
	}
	request := func(header ...string) *http.Request {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	basic := func(name, password string) *http.Request {
		r := request()
		r.SetBasicAuth(name, password)
		return r
	}
	for _, tt := range []struct {
		what   string
		r      *http.Request
		status int
		who    Identity
	}{
		{"nothing", request(), 401, Identity{}},
		{"a token", request("Authorization", "Bearer operators-token"), 200, Identity{"ci", ops.Operator}},
		{"a viewer's token", request("Authorization", "Bearer viewers-token"), 200, Identity{"wall", ops.Viewer}},
		{"a wrong token", request("Authorization", "Bearer operators-toke"), 401, Identity{}},
		{"an empty token", request("Authorization", "Bearer "), 401, Identity{}},
		{"a user", basic("ann", "anns password"), 200, Identity{"ann", ops.Operator}},
		{"a wrong password", basic("ann", "bobs password"), 401, Identity{}},
		{"no such user", basic("eve", ""), 401, Identity{}},
		{"a proxy's user", request("X-User", "joe", "X-Role", "operator"), 200, Identity{"joe", ops.Operator}},
		{"a proxy's user of another role", request("X-User", "joe", "X-Role", "admin"), 401, Identity{}},
		{"a user that a client puts beside the proxy's", twice(request("X-User", "mallory", "X-Role", "operator"), "X-User", "ann"), 401, Identity{}},
		{"a role that a client puts beside the proxy's", twice(request("X-User", "ann", "X-Role", "operator"), "X-Role", "viewer"), 401, Identity{}},
		{"a proxy's user without a role", request("X-User", "joe"), 401, Identity{}},
		{"an author is nobody's proof", request(AuthorHeader, "ann"), 401, Identity{}},
	} {
		if got := ask(tt.r); got != tt.status {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.status)
		}
		if who := s.cfg.Access.identify(tt.r); tt.status == http.StatusOK && who != tt.who {
			t.Errorf("%s: %v, want %v", tt.what, who, tt.who)
		}
	}
}

// TestRefusedCredentials: missing and unknown credentials have different answers, and the log has
// at most one line a second about unknown ones, without them.
func TestRefusedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := New(nil, Config{Access: everyWay(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ask := func(set func(*http.Request), want string) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"me", nil)
			set(r)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			var p problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusUnauthorized || p.Code != "unauthorized" || p.Detail != want {
				t.Errorf("%d %+v, %v; want 401: %s", w.Code, p, err, want)
			}
		}
		token := func(r *http.Request) { r.Header.Set("Authorization", "Bearer hunter2") }
		ask(func(*http.Request) {}, "send a bearer token, or the name and password of a user")
		if log.Len() > 0 {
			t.Errorf("logged without credentials: %s", &log)
		}
		for range 3 {
			ask(token, "the token is not known here")
		}
		ask(func(r *http.Request) { r.SetBasicAuth("hunter2", "hunter2") }, "the name and password are not known here")
		time.Sleep(time.Second)
		ask(token, "the token is not known here")
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level=INFO") || !strings.Contains(lines[1], "not_logged=3") || strings.Contains(log.String(), "hunter2") {
			t.Errorf("the log: %s", &log)
		}
	})
}

func twice(r *http.Request, header, value string) *http.Request {
	r.Header.Add(header, value)
	return r
}

// TestViewerIsRefused: the server refuses each action of a viewer, before it looks at anything
// else.
func TestViewerIsRefused(t *testing.T) {
	s := New(nil, Config{Access: everyWay()})
	for _, r := range routes() {
		if (r.Method == http.MethodGet) != (r.Role == ops.Viewer) {
			t.Errorf("%s %s is for the role %s", r.Method, r.Path, r.Role)
		}
		if r.Role != ops.Operator {
			continue
		}
		req := httptest.NewRequestWithContext(context.Background(), r.Method, Prefix+strings.NewReplacer("{name}", "x", "{run}", "x").Replace(r.Path), strings.NewReader("{}"))
		req.Header.Set("Authorization", "Bearer viewers-token")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "wall has viewer") {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, w.Code, w.Body)
		}
	}
}

// TestOtherOrigins: a page of another origin changes nothing, whatever the browser sends along.
func TestOtherOrigins(t *testing.T) {
	s := New(nil, Config{})
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, Prefix+"jobs/a/runs", nil)
		req.Host = "localhost:8080"
		req.Header.Set(header[0], header[1])
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "cross_origin") {
			t.Errorf("%v: %d %s", header, w.Code, w.Body)
		}
	}
}

// TestNamesOfOthers: an open server refuses a name that was made to lead here.
func TestNamesOfOthers(t *testing.T) {
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer client.Close()
	admin, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	open := New(admin, Config{Access: Access{Hosts: []string{"jobs.internal"}}})
	closed := New(nil, Config{Access: everyWay()})
	for host, let := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "127.0.0.1:8080": true, "[::1]:8080": true, "10.0.0.7": true, "jobs.internal:8080": true, "jobs.internal.": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "": false,
	} {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodGet, Prefix+"me", nil)
		req.Host = host
		w := httptest.NewRecorder()
		open.ServeHTTP(w, req)
		if (w.Code == http.StatusOK) != let || !let && !strings.Contains(w.Body.String(), "unknown_host") {
			t.Errorf("%q: %d %s, want to be let in: %v", host, w.Code, w.Body, let)
		}
		w = httptest.NewRecorder()
		closed.ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d, want 401 where a token is asked for", host, w.Code)
		}
	}
}

// TestWhoIsInTheAudit: the audit has who it was by the server's knowledge, and by what means.
func TestWhoIsInTheAudit(t *testing.T) {
	w := begin(t, Config{Access: everyWay()})
	w.ask("POST", Prefix+"jobs/slow/pause", `{"reason": "stock-taking"}`, "Authorization", "Bearer operators-token", AuthorHeader, "somebody else", ViaHeader, "console")
	w.ask("POST", Prefix+"jobs/slow/resume", `{"reason": "done"}`, "X-User", "joe", "X-Role", "operator")
	w.ask("DELETE", Prefix+"jobs/slow", "", "X-User", "joe", "X-Role", "operator", ReasonHeader, "not needed")
	list, err := w.client.Audit(t.Context(), ops.ActionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range list.Items {
		refused := ""
		if a.Error != "" {
			refused = " refused"
		}
		got = append(got, a.Who+" "+a.Via+" "+a.Action+" "+a.Target+" "+a.Reason+refused)
	}
	const want = "joe api jobs delete slow not needed refused\njoe api jobs resume slow done\nci console jobs pause slow stock-taking"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if _, err := w.client.Audit(context.Background(), ops.ActionFilter{Limit: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

// Each refused request leaves a row in the audit, also one that cannot be read, or that comes while
// too many are open. A dry run leaves none.
func TestRefusalsAreAudited(t *testing.T) {
	w := begin(t, Config{})
	for i := range slowMost {
		if _, err := w.server.slow.begin(fmt.Sprint("other ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []struct{ method, path, body, want string }{
		{"PUT", "jobs/tenant", "no JSON", "jobs put tenant: the body is not JSON"},
		{"PUT", "jobs/tenant", `{"handler": "mail", "schedule": "@daily", "catch_up": 7}`, `jobs put tenant: put job tenant: catch_up: "7" is not one of latest, all, none`},
		{"PUT", "jobs/tenant?new=maybe", "{}", `jobs put tenant: new is "maybe"; it must be true or false`},
		{"PUT", "jobs/tenant", strings.Repeat(" ", bodyMax+1), "jobs put tenant: http: request body too large"},
		{"PUT", "jobs/tenant?dry_run=true", "no JSON", ""},
		{"DELETE", "jobs/tenant?was=once", "", `jobs delete tenant: was is "once"; it must be a time such as 2026-12-01T06:00:00Z`},
		{"POST", "jobs/slow/pause", `{"reson": "x"}`, `jobs pause slow: the body: there is no member "reson" here`},
		{"POST", "jobs/slow/backfill", `{"dry_run": true}`, ""},
		{"POST", "generations/green/promote", "{}", "generations promote green: 4 such requests are open"},
	} {
		before, err := w.client.Audit(t.Context(), ops.ActionFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if code, body, _ := w.ask(r.method, Prefix+r.path, r.body); code < 400 {
			t.Errorf("%s %s: %d %s", r.method, r.path, code, body)
		}
		after, err := w.client.Audit(t.Context(), ops.ActionFilter{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(after.Items) > len(before.Items) {
			a := after.Items[0]
			got = a.Action + " " + a.Target + ": " + a.Error
		}
		if !strings.HasPrefix(got, r.want) || got != "" && r.want == "" {
			t.Errorf("%s %s: the audit has %q; want %q", r.method, r.path, got, r.want)
		}
	}
}

// The name of the scheme has no case, and Guard refuses unknown host names for its handler.
func TestBearerAndGuard(t *testing.T) {
	request := func(host, authorization string) *http.Request {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+host+"/metrics", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return r
	}
	guarded := func(a Access, r *http.Request) int {
		w := httptest.NewRecorder()
		New(nil, Config{Access: a}).Guard(ops.Viewer, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, r)
		return w.Code
	}
	closed := Access{Tokens: map[string]Identity{"secret-token": {Name: "ann", Role: ops.Viewer}}}
	for _, authorization := range []string{"Bearer secret-token", "bearer secret-token", "BEARER  secret-token"} {
		if code := guarded(closed, request("any.example", authorization)); code != http.StatusOK {
			t.Errorf("%s: %d", authorization, code)
		}
	}
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer other", "Bearersecret-token", "Token secret-token"} {
		if code := guarded(closed, request("any.example", authorization)); code != http.StatusUnauthorized {
			t.Errorf("%q: %d", authorization, code)
		}
	}
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "localhost:8080": http.StatusOK, "127.0.0.1": http.StatusOK, "known.example": http.StatusOK} {
		if code := guarded(Access{Hosts: []string{"known.example"}}, request(host, "")); code != want {
			t.Errorf("open, as %s: %d, want %d", host, code, want)
		}
	}
}
