package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSlowRequests: of the requests that read much of Redis a server answers two at once, and the others of them are told when to ask again.
func TestSlowRequests(t *testing.T) {
	s := New(nil, Config{})
	for range slowMost {
		s.slow <- struct{}{}
	}
	for path, status := range map[string]int{"graph": 503, "verify": 503, "problems": 503, "openapi.json": 200} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+Prefix+path, nil))
		if w.Code != status || (w.Header().Get("Retry-After") == "5") != (status == 503) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
