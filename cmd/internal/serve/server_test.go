package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/config"
)

// fakeNode is ready while err is nil.
type fakeNode struct {
	name string
	err  error
}

func (n *fakeNode) Name() string { return n.name }
func (n *fakeNode) Ready() error { return n.err }

func TestHealth(t *testing.T) {
	second := &fakeNode{name: "b", err: errors.New("draining")}
	h := healthHandler([]*fakeNode{{name: "a"}, second})
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, tt := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/readyz", 503, "b: draining\n"},
		{"GET", "/version", 200, `"go":"go`},
		{"POST", "/healthz", 405, ""},
	} {
		if code, body := get(tt.method, tt.path); code != tt.code || !strings.Contains(body, tt.body) {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.path, code, body, tt.code, tt.body)
		}
	}
	second.err = errors.New("drained by ann: \x1b[2Jnew disk\na: ready")
	if code, body := get("GET", "/readyz"); code != 503 || body != `b: drained by ann: \x1b[2Jnew disk\x0aa: ready`+"\n" {
		t.Errorf("a reason that is no line: got %d %q", code, body)
	}
	away := fmt.Errorf("sweep: %w: %w", errors.New("unreachable"), errors.New("refused"))
	second.err = errors.Join(errors.New("drained by ann: new\ndisk"), errors.Join(away, errors.New("clock")))
	if code, body := get("GET", "/readyz"); code != 503 || body != `b: drained by ann: new\x0adisk`+"\nb: sweep: unreachable: refused\nb: clock\n" {
		t.Errorf("several reasons: got %d %q", code, body)
	}
	second.err = nil
	if code, body := get("GET", "/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("all ready: got %d %q", code, body)
	}
}

func TestServer(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	s, err := startServer(config.HTTP{Listen: "0.0.0.0:0"}, healthHandler([]*fakeNode{}), log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.url(), "http://127.0.0.1:") {
		t.Errorf("%s cannot be typed into a browser", s.url())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || string(body) != "ok\n" {
		t.Errorf("got %q, %v", body, err)
	}

	taken := s.listener.Addr().String()
	if _, err := startServer(config.HTTP{Listen: taken}, nil, log); err == nil ||
		!strings.Contains(err.Error(), taken[strings.LastIndex(taken, ":"):]) || !strings.Contains(err.Error(), "ESCAPEMENT_HTTP_LISTEN") {
		t.Errorf("a taken port: got %v, want the port and how to choose another", err)
	}

	// A failed listener ends the wait with its error; an ended context ends it without one.
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the reason why serving ended", err)
	}
	s.stop()
}

func TestNoServer(t *testing.T) {
	s, err := startServer(config.HTTP{}, nil, nil)
	if s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.wait(ctx); err != nil || s.url() != "none" {
		t.Errorf("got %v, %s", err, s.url())
	}
	s.stop()
}

// TestBasePath: health, API and console are served below the base path, and without it.
func TestBasePath(t *testing.T) {
	h := nodesOf(t, false, aJob, "n").handler(config.HTTP{BasePath: "/ops"})
	for _, prefix := range []string{"", "/ops"} {
		for path, has := range map[string]string{"/healthz": "ok", "/readyz": "n", "/version": `"go"`, "/metrics": "# HELP", "/api/v1/me": `"node":"n"`, "/": "app.js", "/app.css": "body"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, prefix+path, nil)
			r.Host = "localhost"
			h.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), has) {
				t.Errorf("%s%s: %d %.200s", prefix, path, w.Code, w.Body)
			}
		}
	}
}
