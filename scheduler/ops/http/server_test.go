package opshttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/escapement/escapement/scheduler/ops"
)

// TestSlowRequests: while half of the places are taken, a server answers two slow requests of one
// caller at once, and refuses a third with a Retry-After.
func TestSlowRequests(t *testing.T) {
	s := New(new(ops.Client), Config{})
	fill(t, &s.slow, "192.0.2.1") // where a test's requests come from
	for path, status := range map[string]int{"graph": 429, "verify": 429, "problems": 429, "openapi.json": 200} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+Prefix+path, nil))
		if w.Code != status || (w.Header().Get("Retry-After") == "5") != (status == 429) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
