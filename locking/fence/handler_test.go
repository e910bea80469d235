package fence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// byPath names the fence of a request: its path.
func byPath(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }

// echo answers with the token that it finds in the context.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	token, ok := fence.TokenFrom(r.Context())
	fmt.Fprintln(w, token, ok)
})

// ask sends one request with these tokens to h.
func ask(h http.Handler, path string, tokens ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPut, path, http.NoBody)
	for _, token := range tokens {
		r.Header.Add("fencing-token", token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// checkFunc is a Store made of its one method.
type checkFunc func(ctx context.Context, name string, token locking.Token) error

func (f checkFunc) Check(ctx context.Context, name string, token locking.Token) error {
	return f(ctx, name, token)
}

// failing is a Store that answers err, and where that was.
func failing(err error) fence.Store {
	return checkFunc(func(context.Context, string, locking.Token) error { return fmt.Errorf("at 10.0.0.7: %w", err) })
}

func TestHandlerAnswers(t *testing.T) {
	down, busy, full := failing(errors.New("refused")), failing(fence.ErrBusy), failing(fence.ErrFull)
	misfit := failing(&fence.InputError{Field: "Config.Keep", Why: "is -1s"})
	for _, c := range []struct {
		name   string
		path   string
		tokens []string
		store  fence.Store
		status int
		want   string // in the body
	}{
		{"current", "/a", []string{"9"}, nil, 200, "9 true"},
		{"newer", "/a", []string{"10"}, nil, 200, "10 true"},
		{"another resource", "/b", []string{"1"}, nil, 200, "1 true"},
		{"stale", "/a", []string{"7"}, nil, 412, `"max":9`},
		{"none", "/a", nil, nil, 428, "send its token in the header Fencing-Token"},
		{"two", "/a", []string{"9", "9"}, nil, 400, "2 fencing tokens"},
		{"two in one", "/a", []string{"9, 10"}, nil, 400, "in digits only"},
		{"of a run without one", "/a", []string{"0"}, nil, 400, "in digits only"},
		{"too large", "/a", []string{"9007199254740992"}, nil, 400, "9007199254740991"},
		{"long", "/a", []string{strings.Repeat("1", 100_000)}, nil, 400, "100000 characters"},
		{"no resource", "/", []string{"9"}, nil, 400, "request a resource that has a fence"},
		{"long resource", "/" + strings.Repeat("x", 513), []string{"9"}, nil, 400, "513 bytes"},
		{"control character", "/%00", []string{"9"}, nil, 400, "request a resource that has a fence"},
		{"no resource, store misfit", "/", []string{"9"}, misfit, 400, "request a resource that has a fence"},
		{"store down", "/a", []string{"9"}, down, 503, "send the same request again"},
		{"store busy", "/a", []string{"9"}, busy, 503, "send the same request again"},
		{"store full", "/a", []string{"9"}, full, 503, "tell the operator of this service"},
		{"store misfit", "/a", []string{"9"}, misfit, 500, "tell the operator of this service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.store == nil {
				c.store = fence.NewMemory(0)
				if err := c.store.Check(t.Context(), "a", 9); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			h := &fence.Handler{Next: echo, Store: c.store, Resource: byPath, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			resp := ask(h, c.path, c.tokens...)
			body, header := resp.Body.String(), resp.Result().Header
			if resp.Code != c.status || !strings.Contains(body, c.want) || len(body) > 2000 {
				t.Errorf("%d %s", resp.Code, body)
			}
			if c.status == 200 {
				return
			}
			if !json.Valid([]byte(body)) || header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store" {
				t.Errorf("not JSON, or to be cached: %s %v", body, header)
			}
			if strings.Contains(body, "10.0.0.7") || strings.Contains(log.String(), "10.0.0.7") != (c.status >= 500) {
				t.Errorf("what the store said is for the log: body %s, log %s", body, &log)
			}
			if (header.Get(fence.MaxHeader) == "9") != (c.status == 412) {
				t.Errorf("headers %v", header)
			}
			if asked := strings.Contains(body, "same request again"); asked != (c.name == "store down" || c.name == "store busy") || asked != (header.Get("Retry-After") == "1") {
				t.Errorf("asked to come again: %s %v", body, header)
			}
		})
	}
}

// TestHandlerLacks: a missing field is in the log, and no token is stored.
func TestHandlerLacks(t *testing.T) {
	store := fence.NewMemory(0)
	for field, h := range map[string]*fence.Handler{
		"Handler.Next":     {Store: store, Resource: byPath},
		"Handler.Store":    {Next: echo, Resource: byPath},
		"Handler.Resource": {Next: echo, Store: store},
	} {
		var log bytes.Buffer
		h.Logger = slog.New(slog.NewTextHandler(&log, nil))
		resp := ask(h, "/a", "9")
		if resp.Code != http.StatusInternalServerError || !strings.Contains(resp.Body.String(), "tell the operator of this service") || !strings.Contains(log.String(), field+" is nil") {
			t.Errorf("without %s: %d %s, log %s", field, resp.Code, resp.Body, &log)
		}
	}
	if err := store.Check(t.Context(), "a", 1); err != nil {
		t.Errorf("a smaller token than those: %v", err)
	}
}

func TestTransportAndRefusal(t *testing.T) {
	guard := &fence.Handler{Next: echo, Store: fence.NewMemory(0), Resource: byPath}
	server := httptest.NewServer(guard)
	defer server.Close()
	client := &http.Client{Transport: &fence.Transport{Base: server.Client().Transport}}
	defer client.CloseIdleConnections()
	put := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/a?secret=1", strings.NewReader("x"))
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if len(r.Header) > 0 {
			t.Error("the caller's request was changed:", r.Header)
		}
		if err := fence.Refusal(resp); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
	if err := put(fence.WithToken(t.Context(), 9)); err != nil {
		t.Error(err)
	}
	var stale *fence.StaleError
	if err := put(fence.WithToken(t.Context(), 7)); !errors.As(err, &stale) || *stale != (fence.StaleError{Fence: "a", Token: 7, Max: 9}) {
		t.Errorf("stale: %v", err)
	}
	if err := put(t.Context()); err == nil || !strings.Contains(err.Error(), "428") {
		t.Errorf("without a token: %v", err)
	}
}

// body counts its closings.
type body struct {
	io.Reader
	closed int
}

func (b *body) Close() error { b.closed++; return nil }

// roundTrip is an http.RoundTripper made of its one method.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A token that is none is not sent, and the body is closed, as by every RoundTripper.
func TestTransportRefusesToken(t *testing.T) {
	var sent int
	transport := &fence.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, io.EOF
	})}
	send := func(r *http.Request) error {
		resp, err := transport.RoundTrip(r)
		if resp != nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, token := range []locking.Token{0, -1, fence.MaxToken + 1} {
		b := &body{Reader: strings.NewReader("x")}
		r := httptest.NewRequestWithContext(fence.WithToken(t.Context(), token), http.MethodPut, "/a", b)
		var input *fence.InputError
		if err := send(r); !errors.As(err, &input) || sent != 0 || b.closed != 1 {
			t.Errorf("%d: %v, sent %d times, body closed %d times", token, err, sent, b.closed)
		}
		r.Body = nil
		if err := send(r); !errors.As(err, &input) {
			t.Errorf("%d without a body: %v", token, err)
		}
	}
}

func TestWithLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keeper := locking.NewKeeper(renewer{}, locking.KeeperConfig{})
		lease := keeper.Hold(t.Context(), locking.Grant{Name: "a", Owner: "o", Token: 42, TTL: 15 * time.Second, Asked: time.Now()})
		ctx := fence.WithLease(lease)
		if token, ok := fence.TokenFrom(ctx); token != 42 || !ok || ctx.Err() != nil {
			t.Errorf("%d, %v, %v", token, ok, ctx.Err())
		}
		lease.Close()
		if !errors.Is(context.Cause(ctx), locking.ErrReleased) {
			t.Errorf("the lease is over, its context is not: %v", context.Cause(ctx))
		}
	})
}

// renewer renews everything.
type renewer struct{}

func (renewer) Renew(_ context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	return make([]locking.RenewAnswer, len(batch)), nil
}

func TestRefusalOfOthers(t *testing.T) {
	for _, c := range []struct {
		status       int
		header, body string
		want         string
	}{
		{200, "9", "", "<nil>"},
		{412, "", "if-match", "<nil>"},
		{409, "9", "", "<nil>"},
		{412, "nine", "", "refused as stale, with a wrong header Fencing-Token-Max"},
		{412, "9", "no JSON", `fence "/a": stale token 7: the guard has seen 9`},
		{412, "9", `{"fence":"b","token":8,"max":1}`, `fence "b": stale token 8: the guard has seen 9`},
		{412, "9", `{"fence":"` + strings.Repeat("x", 1<<20), `fence "/a": stale token 7`},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}
		resp.Header.Set(fence.MaxHeader, c.header)
		resp.Request = httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/a?secret=1", http.NoBody)
		resp.Request.Header.Set(fence.TokenHeader, "7")
		if got := fmt.Sprint(fence.Refusal(resp)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%d %s: got %.200s, want %s", c.status, c.header, got, c.want)
		}
		_ = resp.Body.Close()
	}
}

// TestLateRequest: an old holder's request is passed on and pauses, and a new holder's comes. The late write comes first: over a
// store that only compares, it would come last. That is why the handler keeps the fence shut.
func TestLateRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []locking.Token
		var cause error
		h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: time.Hour, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			token, _ := fence.TokenFrom(r.Context())
			if token == 1 {
				time.Sleep(time.Minute)
				cause = context.Cause(r.Context())
			}
			order = append(order, token)
		})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			ask(h, "/a", "1")
		}()
		synctest.Wait()
		if resp := ask(h, "/a", "2"); resp.Code != http.StatusOK {
			t.Errorf("the new holder: %d", resp.Code)
		}
		<-done
		if fmt.Sprint(order) != "[1 2]" || !errors.Is(cause, fence.ErrStale) {
			t.Errorf("writes in the order %v, and the context of the old holder's request has cause %v", order, cause)
		}
	})
}

// A panic in Next opens the fence again.
func TestHandlerLeavesOnPanic(t *testing.T) {
	h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })}
	func() {
		defer func() { _ = recover() }()
		ask(h, "/a", "1")
	}()
	h.Next = echo
	if resp := ask(h, "/a", "2"); resp.Code != http.StatusOK {
		t.Errorf("after a panic: %d", resp.Code)
	}
}
