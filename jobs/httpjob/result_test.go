package httpjob

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// TestResult: the body of an expected answer is the run's result, where Options.Result is set. A
// result that cannot be kept is reported in the output, and the run has succeeded all the same.
func TestResult(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		asked  bool
		want   string
		out    string // after the body
	}{
		{"JSON", http.StatusOK, " {\"n\": 3}\n", true, `{"n":3}`, ""},
		{"not asked for", http.StatusOK, `{"n": 3}`, false, "", ""},
		{"no body", http.StatusNoContent, "", true, "", ""},
		{"another status", http.StatusBadGateway, "3", true, "", ""},
		{"no JSON", http.StatusOK, "done", true, "", "\nescapement: the result was not kept: result: is no JSON in UTF-8\n"},
		{"too large", http.StatusOK, `"` + strings.Repeat("x", 4095) + `"`, true, "", "\nescapement: the result was not kept: result: 4097 bytes are more than 4096; store it elsewhere and pass its address\n"},
		{"JSON up to the bound, and more", http.StatusOK, "3" + strings.Repeat(" ", maxResultBody), true, "", "\nescapement: the result was not kept: result: the body has 65537 bytes, more than 65536; store it elsewhere and pass its address\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			f, err := New(Options{URL: server.URL, Result: tt.asked})
			if err != nil {
				t.Fatal(err)
			}
			run := jobs.NewRun(jobs.RunInfo{Job: "job"})
			err = f(t.Context(), run)
			out := string(run.Written())
			if (err == nil) != (tt.status < 300) || string(run.Result()) != tt.want || !strings.HasSuffix(tt.body+tt.out, out) || !strings.HasSuffix(out, tt.out) {
				t.Errorf("%v, result %q, wrote %q; want %q, %q", err, run.Result(), out, tt.want, tt.out)
			}
		})
	}
}
