package httpjob_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
)

func headers(name, value string) httpjob.Options {
	return httpjob.Options{URL: "http://h", Headers: map[string]string{name: value}}
}

func TestValidateAccepts(t *testing.T) {
	for _, o := range []httpjob.Options{
		{URL: "http://h"},
		{URL: "https://user:pass@example.org:8443/a%20b?q=1&r", Method: "DELETE", Expect: "2xx, 404"},
		{URL: "http://[::1]:80/"},
		headers("Host", "[::1]:80"),
		headers("X-Latin", "zürich"),
	} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestValidateRefuses wants each fault with its field, and without a word that may be secret.
func TestValidateRefuses(t *testing.T) {
	const url = "http://h"
	for _, c := range []struct {
		options httpjob.Options
		want    string
	}{
		{httpjob.Options{}, "url: is missing"},
		{httpjob.Options{URL: "h/hunter2"}, "url: is not http:// or https://"},
		{httpjob.Options{URL: "http:///hunter2"}, "url: names no host"},
		{httpjob.Options{URL: "http://u:hunter2@h:port/"}, "url: cannot be read as a URL"},
		{httpjob.Options{URL: "http://h/\r\nX-A: hunter2"}, "url: cannot be read as a URL"},
		{httpjob.Options{URL: "http://h:65536/?hunter2"}, "url: has a port outside"},
		{httpjob.Options{URL: "http://h/#hunter2"}, "url: has a #"},
		{httpjob.Options{URL: url, Method: "get"}, `method: "get" is not one of GET`},
		{httpjob.Options{URL: url, Method: strings.Repeat("x", 5000)}, "method: \"xxx"},
		{httpjob.Options{URL: url, Expect: "2x"}, `expect: "2x" is not a status`},
		{httpjob.Options{URL: url, Expect: "200,"}, `expect: "" is not a status`},
		{httpjob.Options{URL: url, Expect: "1xx"}, `expect: "1xx" is not a status`},
		{headers("X-A", "hunter2\r\nX-B: c"), "headers.X-A: holds a line end"},
		{headers("X-A", "hunter2\x00"), "headers.X-A: holds a line end"},
		{headers("X-A: b\r\nX-B", "c"), `headers."X-A:...": is not the name of a header`},
		{headers("X-A hunter2", ""), `headers."X-A ...": is not the name of a header`},
		{headers("X-A=hunter2", ""), `headers."X-A=...": is not the name of a header`},
		{headers("", "c"), `headers."": is not the name`},
		{headers("Zürich", "c"), `headers."Zürich": is not the name`},
		{headers("Host", "h/hunter2"), "headers.Host: is not HOST"},
		{headers("escapement-job", "hunter2"), "headers.escapement-job: is set by the run"},
		{headers("fencing-token", "1"), "headers.fencing-token: is set by the run"},
		{headers("connection", "close"), "headers.connection: belongs to the connection"},
		{headers("Proxy-Authorization", "hunter2"), "headers.Proxy-Authorization: belongs to the connection"},
		{httpjob.Options{URL: url, Headers: map[string]string{"X-A": "1", "x-a": "2"}}, "headers.x-a: is the same header as X-A"},
	} {
		err := c.options.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
			continue
		}
		if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "\n") || len(text) > 300 {
			t.Errorf("%s: the text is %q", c.want, text)
		}
		if f, made := httpjob.New(c.options); f != nil || made == nil || made.Error() != err.Error() {
			t.Errorf("%s: New says %v", c.want, made)
		}
	}
}

// The values of a run are checked like the options.
func TestHeaderInjectionByARun(t *testing.T) {
	client := &http.Client{Transport: network(func(*http.Request) (*http.Response, error) {
		t.Error("sent all the same")
		return nil, errors.New("unreachable")
	})}
	for name, edit := range map[string]func(*jobs.RunInfo){
		"Escapement-Param": func(i *jobs.RunInfo) { i.Param = "a\r\nX-B: hunter2" },
		"Escapement-Job":   func(i *jobs.RunInfo) { i.Job = "a\x00" },
	} {
		in := info()
		edit(&in)
		_, err := call(t.Context(), t, httpjob.Options{URL: "http://h/p", Client: client}, in)
		want := "POST http://h/***: not sent: " + name + " holds a control character, which a header cannot"
		if err == nil || err.Error() != want || !jobs.IsPermanent(err) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
