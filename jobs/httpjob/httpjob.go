package httpjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

const (
	// withoutTimeout bounds a call of a job that has no timeout.
	defaultTimeout = time.Minute
	// dialTimeout and tlsTimeout bound the two steps before a request can be sent.
	dialTimeout = 10 * time.Second
	tlsTimeout  = 10 * time.Second
	// maxHead bounds the head of an answer, in bytes.
	maxHead = 64 << 10
)

// errNoTimeout ends a call that nothing else bounds.
var errNoTimeout = fmt.Errorf("no end of the answer within %v, which is all that a job without a timeout is given; give the job one",
	defaultTimeout)

// Options say what to call.
type Options struct {
	// Method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS. Default POST.
	Method string
	// URL is http:// or https://. A user and password in it are sent as basic
	// authorization. Required.
	URL string
	// Headers are added to the request. Host replaces the host of the URL. Headers of the
	// connection, and those that a run sets itself, are refused. Default none.
	Headers map[string]string
	// Body is sent as it is; a payload takes its place. A request that has a body says
	// Content-Type: application/json unless Headers say otherwise. Default none.
	Body string
	// Expect lists the statuses of success, as classes and numbers: "2xx,304". Default "2xx".
	Expect string
	// Client is used with its redirects off; what it sends again by itself is its own affair.
	// Default: one with the timeouts named in the package comment, whose connections all such
	// jobs share.
	Client *http.Client
}

// New returns a job's function that sends the request once for each call and judges the
// answer; see the package comment. The error is that of Validate. o is not kept.
func New(o Options) (jobs.Func, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	expect, err := parseExpect(o.Expect)
	if err != nil {
		return nil, err // Validate has read it once already
	}
	c := caller{
		method: defaultTo(o.Method, http.MethodPost), url: o.URL, body: o.Body, expect: expect,
		headers: make(http.Header),
	}
	c.name = c.method + " " + redact(o.URL)
	for name, value := range o.Headers {
		c.headers.Set(name, value)
	}
	c.client.Transport = c.transport()
	if o.Client != nil {
		c.client = *o.Client
	}
	if c.client.Transport == nil {
		c.client.Transport = http.DefaultTransport
	}
	c.client.Transport = dropBadLocation{c.client.Transport}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c.run, nil
}

// anyLocation drops a Location that cannot be read: the client fails over it, with what it says in
// the error, even when redirects are off.
type dropBadLocation struct{ http.RoundTripper }

// RoundTrip sends the request.
func (a dropBadLocation) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(req)
	if err != nil || resp == nil { // the client words both
		return resp, err
	}
	if _, bad := req.URL.Parse(resp.Header.Get("Location")); bad != nil {
		resp.Header.Del("Location")
	}
	return resp, nil
}

func defaultTo(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shared is the transport of every call that names no client, single of those that net/http
// would send again by itself when a connection that was used before breaks off.
var (
	shared = newTransport(dialTimeout, tlsTimeout)
	single = func() *http.Transport {
		t := newTransport(dialTimeout, tlsTimeout)
		t.DisableKeepAlives = true
		return t
	}()
)

// transport is the one of the two by which the request is sent once. net/http holds safe methods for
// repeatable, though a job's call may well start something, and what says so with one of two headers.
func (c *caller) transport() *http.Transport {
	safe := c.method == http.MethodGet || c.method == http.MethodHead || c.method == http.MethodOptions
	if safe || c.headers["Idempotency-Key"] != nil || c.headers["X-Idempotency-Key"] != nil {
		return single
	}
	return shared
}

func newTransport(dial, handshake time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dial}).DialContext,
		TLSHandshakeTimeout:    handshake,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHead,
	}
}

// caller is a request to be sent and what answers it wants.
type caller struct {
	name    string // for errors: the method and what may be shown of the URL
	method  string
	url     string
	headers http.Header
	body    string
	expect  expectation
	client  http.Client
}

func (c *caller) run(ctx context.Context, run *jobs.Run) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: not sent: %w", c.name, context.Cause(ctx))
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, defaultTimeout, errNoTimeout)
		defer cancel()
	}
	req, err := c.request(ctx, run)
	if err != nil {
		return fmt.Errorf("%s: not sent: %w", c.name, err)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, cause(ctx, err))
	}
	defer resp.Body.Close()
	return c.judge(ctx, resp, run)
}

// request builds the request of one run.
func (c *caller) request(ctx context.Context, run *jobs.Run) (*http.Request, error) {
	text := c.body
	if payload := run.Payload(); len(payload) > 0 {
		text = string(payload)
	}
	var body io.Reader
	if text != "" {
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return nil, errors.New("the request cannot be made") // Validate lets nothing here; err shows the URL
	}
	req.Header = c.headers.Clone()
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	if text != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "escapement")
	}
	for _, h := range runHeaders(run) {
		if !printable(h.value) {
			return nil, jobs.Permanent(fmt.Errorf("%s holds a control character, which no header can carry", h.name))
		}
		req.Header.Set(h.name, h.value)
	}
	return req, nil
}

// plain is why a call failed: the context's cause when that ended it, else the error without
// the URL that the client puts before it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
