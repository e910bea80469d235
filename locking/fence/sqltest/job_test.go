package sqltest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
	"github.com/escapement/escapement/locking/fence"
)

// A job of kind http sends its run's token by itself, and fails when it is stale.
func TestHTTPJobMeetsHandler(t *testing.T) {
	server := httptest.NewServer(&fence.Handler{
		Store:    fence.NewMemory(0),
		Resource: func(r *http.Request) string { return r.Header.Get("Escapement-Job") },
		Next:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "settled") }),
	})
	defer server.Close()
	call, err := httpjob.New(httpjob.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token int64
		want  string // in the error
	}{{17, ""}, {17, ""}, {16, "412"}, {18, ""}, {0, "400"}} {
		err := call(t.Context(), jobs.NewRun(jobs.RunInfo{Job: "settle", Tick: time.Now().Truncate(time.Millisecond), Token: c.token}))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("token %d: %v, want %q", c.token, err, c.want)
		}
	}
}
