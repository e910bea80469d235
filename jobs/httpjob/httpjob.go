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
	"github.com/escapement/escapement/jobs/internal/machine"
	"github.com/escapement/escapement/jobs/mask"
)

const (
	// defaultTimeout bounds a call of a job without Timeout.
	defaultTimeout = time.Minute
	// dialTimeout and tlsTimeout bound the two steps before a request.
	dialTimeout = 10 * time.Second
	tlsTimeout  = 10 * time.Second
	// maxHead bounds the head of an answer, in bytes.
	maxHead = 64 << 10
)

// errNoTimeout is the cause after defaultTimeout.
var errNoTimeout = fmt.Errorf("no complete answer within %v, the limit of a job without a timeout; set the job's timeout",
	defaultTimeout)

// Options describe a request and the expected answer.
type Options struct {
	// Method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS. Default POST.
	Method string
	// URL begins with http:// or https://. A user and password in it are sent as basic authorization.
	// Required.
	URL string
	// Headers are added to the request. Host replaces the host of the URL. Headers of the
	// connection, and the run's own headers, are refused. Default none.
	Headers map[string]string
	// Body is sent unchanged; a payload replaces it. With a body, Content-Type is application/json unless
	// Headers set it. Default none.
	Body string
	// Expect lists the statuses of success, as classes and numbers: "2xx,304". Default "2xx".
	Expect string
	// Result makes the body of an answer that is expected the run's result: JSON, which the jobs that follow get as payload.
	// Default: it is output only.
	Result bool
	// Client sends the request, with redirects off. It may repeat requests by itself. Default: a client
	// with the timeouts of the package comment, whose connections all jobs share.
	Client *http.Client
}

// New returns a job's function that sends the request once for each try, and compares the answer
// with Expect. The error is Validate's. o is not kept.
func New(o Options) (jobs.Func, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	expect, err := parseExpect(o.Expect)
	if err != nil {
		return nil, err // never: Validate has parsed it
	}
	c := caller{
		method: defaultTo(o.Method, http.MethodPost), url: o.URL, body: o.Body, expect: expect, result: o.Result,
		headers: make(http.Header),
	}
	c.name = c.method + " " + mask.URL(o.URL)
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

// dropBadLocation removes a Location that cannot be parsed: the client would fail with its text in the
// error, also with redirects off.
type dropBadLocation struct{ http.RoundTripper }

// RoundTrip sends the request.
func (a dropBadLocation) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(req)
	if err != nil || resp == nil { // the client makes the error
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

// shared is the transport of calls without Options.Client. single is for methods that net/http
// would repeat by itself when a reused connection breaks.
var (
	shared = newTransport(dialTimeout, tlsTimeout)
	single = func() *http.Transport {
		t := newTransport(dialTimeout, tlsTimeout)
		t.DisableKeepAlives = true
		return t
	}()
)

// transport returns the transport that sends the request once. net/http repeats requests with a safe method,
// or with one of two headers, on a reused connection; a job's GET may start something.
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

// caller is a request and its expected answer.
type caller struct {
	name    string // for errors: the method, and the URL up to its host
	method  string
	url     string
	headers http.Header
	body    string
	expect  expectation
	result  bool // the body is the run's result
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
	if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" && ctx.Err() == nil { // nothing was sent
		return fmt.Errorf("%s: %w", c.name, machine.Fault(cause(ctx, err)))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, cause(ctx, err))
	}
	defer resp.Body.Close()
	return c.checkAnswer(ctx, resp, run)
}

// request returns the request of one run.
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
		return nil, errors.New("the request cannot be made") // never: Validate has checked it; err shows the URL
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
			return nil, jobs.Permanent(fmt.Errorf("%s holds a control character, which a header cannot", h.name))
		}
		req.Header.Set(h.name, h.value)
	}
	if trace := jobs.Traceparent(ctx); trace != "" {
		req.Header.Set("Traceparent", trace)
	}
	return req, nil
}

// cause returns why a call failed: the context's cause if that ended it, else the error without the client's URL.
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
