package opshttp

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzServer sends garbage to each route: no answer of 500 and none without problem details, and no
// panic.
func FuzzServer(f *testing.F) {
	for i := range routes() {
		f.Add(uint8(i), "slow", "limit=1", []byte(`{"reason":"x"}`))
		f.Add(uint8(i), "..%2f\x00%", "limit=-1&after=\xff&since=x&wait_ms=9", []byte(`{"to":{},"token":"99999999999999999999","until":"x"`))
	}
	f.Add(uint8(6), "slow", "", []byte(`{"payload":`+strings.Repeat("[", 20000)+`}`))
	w, all := begin(f, Config{}), routes()
	f.Fuzz(func(t *testing.T, at uint8, name, query string, body []byte) {
		r := all[int(at)%len(all)]
		req := httptest.NewRequestWithContext(context.Background(), r.Method, Prefix, bytes.NewReader(body))
		req.URL.Path = Prefix + strings.NewReplacer("{name}", name, "{run}", name).Replace(r.Path)
		req.URL.RawPath, req.URL.RawQuery = "", query
		req.Host = "localhost"
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, req)
		if rec.Code >= http.StatusInternalServerError {
			t.Errorf("%s %q?%q %q: %d %s", r.Method, req.URL.Path, query, body, rec.Code, rec.Body)
		}
		if rec.Code >= http.StatusBadRequest && rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %q: %d %s", r.Method, req.URL.Path, rec.Code, rec.Body)
		}
	})
}
