package httpjob_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
)

// answers is a network on which every request is answered at once.
type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: req}, nil
}

// network is a RoundTripper made of a function.
type network func(*http.Request) (*http.Response, error)

func (n network) RoundTrip(req *http.Request) (*http.Response, error) { return n(req) }

func info() jobs.RunInfo {
	return jobs.RunInfo{ID: "r1", Job: "report", Tick: time.Date(2026, 3, 1, 12, 5, 0, 7e6, time.UTC), Shard: 1, Shards: 4,
		Attempt: 2, Try: 3, Token: 1_770_000_000_000_001, Node: "a1", Trigger: jobs.TriggerCatchUp, Param: "eu"}
}

// call makes a job of the options and runs it once.
func call(ctx context.Context, t *testing.T, o httpjob.Options, in jobs.RunInfo) (*jobs.Run, error) {
	t.Helper()
	f, err := httpjob.New(o)
	if err != nil {
		t.Fatal(err)
	}
	run := jobs.NewRun(in)
	return run, f(ctx, run)
}

// seen is the request at a server.
type seen struct {
	method, host, path, body string
	header                   http.Header
}

// listen starts a server that notes each request and answers 204.
func listen(t *testing.T) (*httptest.Server, <-chan seen) {
	t.Helper()
	requests := make(chan seen, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- seen{r.Method, r.Host, r.URL.RequestURI(), string(body), r.Header}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	return server, requests
}

func TestRequest(t *testing.T) {
	server, requests := listen(t)
	run, err := call(t.Context(), t, httpjob.Options{
		Method: "PUT", URL: strings.Replace(server.URL, "//", "//ann:hunter2@", 1) + "/a%2Fb?k=v", Body: "one=1",
		Headers: map[string]string{"content-type": "application/x-www-form-urlencoded", "Host": "inner.example:81", "X-Kind": "nightly", "User-Agent": "me"},
	}, info())
	if err != nil || run.Written() != nil {
		t.Fatalf("error %v, output %q", err, run.Written())
	}
	got := <-requests
	if got.method != "PUT" || got.host != "inner.example:81" || got.path != "/a%2Fb?k=v" || got.body != "one=1" {
		t.Errorf("request %+v", got)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "X-Kind": "nightly", "User-Agent": "me", "Authorization": "Basic YW5uOmh1bnRlcjI=",
		"Escapement-Job": "report", "Escapement-Tick": "2026-03-01T12:05:00.007Z", "Escapement-Tick-Ms": "1772366700007",
		"Escapement-Run": "r1", "Escapement-Attempt": "2", "Escapement-Try": "3", "Fencing-Token": "1770000000000001",
		"Escapement-Node": "a1", "Escapement-Shard": "1", "Escapement-Shards": "4", "Escapement-Param": "eu", "Escapement-Trigger": "catch_up",
	} {
		if values := got.header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
}

// A trace of the run's context replaces the one of the options.
func TestTrace(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	server, requests := listen(t)
	o := httpjob.Options{URL: server.URL, Headers: map[string]string{"traceparent": "the options'"}}
	for _, tt := range []struct{ trace, want string }{{trace, trace}, {"", "the options'"}, {"00-0", "the options'"}} {
		if _, err := call(jobs.WithTraceparent(t.Context(), tt.trace), t, o, info()); err != nil {
			t.Fatal(err)
		}
		if got := (<-requests).header["Traceparent"]; len(got) != 1 || got[0] != tt.want {
			t.Errorf("trace %q: the server saw %q", tt.trace, got)
		}
	}
}

func TestBody(t *testing.T) {
	server, requests := listen(t)
	for _, c := range []struct {
		options           httpjob.Options
		payload           string
		body, contentType string
	}{
		{httpjob.Options{}, "", "", ""},
		{httpjob.Options{Body: `{"a": 1}`}, "", `{"a": 1}`, "application/json"},
		{httpjob.Options{Body: `{"a": 1}`}, `{"b": 2}`, `{"b": 2}`, "application/json"},
		{httpjob.Options{}, `{"b": 2}`, `{"b": 2}`, "application/json"},
		{httpjob.Options{Headers: map[string]string{"Content-Type": "text/plain"}}, "hello", "hello", "text/plain"},
	} {
		c.options.URL = server.URL
		in := info()
		in.Payload = []byte(c.payload)
		if _, err := call(t.Context(), t, c.options, in); err != nil {
			t.Fatal(err)
		}
		if got := <-requests; got.body != c.body || got.header.Get("Content-Type") != c.contentType {
			t.Errorf("body %q of type %q, want %q of type %q", got.body, got.header.Get("Content-Type"), c.body, c.contentType)
		}
	}
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		expect             string
		good, retry, final string
	}{
		{"", "200 201 204 299", "301 304 408 425 429 500 502 503 599", "400 401 404 409 410 422 499"},
		{"200,204", "200 204", "201 302 500", "404"},
		{" 2xx, 3xx ", "200 304 308", "408 500", "400"},
		{"404", "404", "200 503 429", "410"},
		{"5xx,4xx", "404 408 429 500", "200 302", ""},
	} {
		judge := func(statuses string, good, permanent bool) {
			for _, text := range strings.Fields(statuses) {
				var status int
				if _, err := fmt.Sscan(text, &status); err != nil {
					t.Fatal(err)
				}
				client := &http.Client{Transport: answers{status, "a\nb"}}
				run, err := call(t.Context(), t, httpjob.Options{URL: "http://h/p", Expect: c.expect, Client: client}, info())
				if (err == nil) != good || jobs.IsPermanent(err) != permanent || string(run.Written()) != "a\nb" {
					t.Errorf("expecting %q, %s: %v, permanent %v, output %q", c.expect, text, err, jobs.IsPermanent(err), run.Written())
				}
			}
		}
		judge(c.good, true, false)
		judge(c.retry, false, false)
		judge(c.final, false, true)
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{500, "", "POST http://h/***: 500 Internal Server Error"},
		{599, "", "POST http://h/***: 599"},
		{503, "\r\n \n\tbusy \r\ntry later\n", "POST http://h/***: 503 Service Unavailable: busy"},
		{404, "<h1>no\x1b[31m\x00\xff</h1>", "POST http://h/***: 404 Not Found: <h1>no[31m</h1>"},
		{404, strings.Repeat("ä", 5000), "POST http://h/***: 404 Not Found: " + strings.Repeat("ä", 128)},
		{404, "x" + strings.Repeat("ä", 5000), "POST http://h/***: 404 Not Found: x" + strings.Repeat("ä", 127)},
		{200, "", "POST http://h/***: 200 OK"},
	} {
		_, err := call(t.Context(), t, httpjob.Options{URL: "http://h/p", Expect: "204", Client: &http.Client{Transport: answers{c.status, c.body}}}, info())
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// The path of a URL may be a key: no error has it, not even where the server repeats it.
func TestPathIsASecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot "+r.Method+" "+r.RequestURI, http.StatusNotFound)
	}))
	defer server.Close()
	_, err := call(t.Context(), t, httpjob.Options{URL: server.URL + "/ping/hunter2?key=hunter3"}, info())
	if want := "POST " + server.URL + "/***: 404 Not Found: Cannot POST ***"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var followed bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/new" {
			followed = true
			return
		}
		if r.URL.Path == "/odd" {
			w.Header().Set("Location", "/%zz?key=hunter2")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, r, "/new?key=hunter2", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	own := &http.Client{}
	for path, where := range map[string]string{"/old": "; it points to " + server.URL + "/***", "/odd": ""} {
		want := "POST " + server.URL + "/***: 307 Temporary Redirect, and redirects are not followed" + where
		for _, client := range []*http.Client{nil, own} {
			if _, err := call(t.Context(), t, httpjob.Options{URL: server.URL + path, Client: client}, info()); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if _, err := call(t.Context(), t, httpjob.Options{URL: server.URL + path, Expect: "307", Client: client}, info()); err != nil {
				t.Errorf("expected, and still: %v", err)
			}
		}
	}
	if followed {
		t.Error("the redirect was followed")
	}
	if own.CheckRedirect != nil {
		t.Error("the caller's own client was changed")
	}
}
