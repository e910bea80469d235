package httpjob

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// secretly is a request with a secret in each place that may hold one.
func secretly(address string) Options {
	scheme, host, _ := strings.Cut(address, "://")
	return Options{
		URL: scheme + "://user:hunter2@" + host + "/hook?key=hunter2", Body: "hunter2",
		Headers: map[string]string{"Authorization": "Bearer hunter2", "X-Key": "hunter2"},
	}
}

func attempt(t *testing.T, o Options) error {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f(t.Context(), jobs.NewRun(jobs.RunInfo{}))
}

// listener accepts connections and hands each to serve.
func listener(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

// TestNetworkErrors wants each failure with method and shown URL, worth a retry, and without
// secrets.
func TestNetworkErrors(t *testing.T) {
	closing := listener(t, func(c net.Conn) { readSome(c); c.Close() })
	garbage := listener(t, func(c net.Conn) { readSome(c); _, _ = io.WriteString(c, "220 mail ready\r\n"); c.Close() })
	silent := listener(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); c.Close() })
	const refused = "127.0.0.1:1" // a port that was free a moment ago may be another test's now
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the client that did not trust it
	secure.StartTLS()
	defer secure.Close()
	quick := &http.Client{Transport: newTransport(time.Second, 50*time.Millisecond)}
	for _, c := range []struct {
		url, want string
		client    *http.Client
	}{
		{"http://" + refused, "connection refused", nil},
		{"http://no-such-host.invalid", "lookup no-such-host.invalid", nil},
		{"http://" + closing, "EOF", nil},
		{"http://" + garbage, "malformed HTTP", nil},
		{secure.URL, "certificate signed by unknown authority", nil},
		{"https://" + silent, "TLS handshake timeout", quick},
		{"http://h", "the cable is cut", &http.Client{Transport: cut{}}},
	} {
		o := secretly(c.url)
		o.Client = c.client
		err := attempt(t, o)
		if err == nil || !strings.HasPrefix(err.Error(), "POST "+c.url+"/***: ") || !strings.Contains(err.Error(), c.want) || jobs.IsPermanent(err) {
			t.Errorf("%s: %v, permanent %v", c.want, err, jobs.IsPermanent(err))
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), "hunter2") {
			t.Errorf("%s: a secret is told: %v", c.want, err)
		}
	}
}

// readSome waits for a request to begin, which it does with one packet.
func readSome(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }

type cut struct{}

func (cut) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the cable is cut")
}

func TestKeepsConnections(t *testing.T) {
	remotes := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}))
	defer server.Close()
	for range 2 {
		if err := attempt(t, Options{URL: server.URL}); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := <-remotes, <-remotes; first != second {
		t.Errorf("two calls came from %s and %s: the connection is not used again", first, second)
	}
}

// TestSentOnce breaks a kept connection off when the request has come: Go's client would send some requests again by itself.
func TestSentOnce(t *testing.T) {
	for _, o := range []Options{{Method: http.MethodGet}, {Method: http.MethodHead}, {Method: http.MethodOptions}, {Method: http.MethodGet, Body: "b"},
		{Method: http.MethodPost}, {Method: http.MethodPost, Headers: map[string]string{"idempotency-key": "k"}}} {
		var came atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if came.Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		o.URL = server.URL
		first, second := attempt(t, o), attempt(t, o)
		if n := came.Load(); first != nil || second == nil || jobs.IsPermanent(second) || n != 2 {
			t.Errorf("%s: two calls were %d requests: %v, %v", o.Method, n, first, second)
		}
		server.Close()
	}
}
