package fence_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// TestHandlerWaits: a request waits for so long while an older one is inside that heeds no context. Its own context does not end:
// net/http does not notice that a client has gone while there is a body to read.
func TestHandlerWaits(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, -1: 5 * time.Second, time.Millisecond: time.Millisecond, time.Hour: time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			hold, done := make(chan struct{}), make(chan struct{})
			h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: wait, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if token, _ := fence.TokenFrom(r.Context()); token == 1 {
					<-hold
				}
			})}
			go func() {
				defer close(done)
				ask(h, "/a", "1")
			}()
			defer func() { close(hold); <-done }()
			synctest.Wait()
			asked := time.Now()
			resp := ask(h, "/a", "2")
			if waited := time.Since(asked); waited != want {
				t.Errorf("wait %s: waited %s, want %s", wait, waited, want)
			}
			if resp.Code != http.StatusServiceUnavailable || resp.Header().Get("Retry-After") != "1" || !strings.Contains(resp.Body.String(), "a smaller token is still being served") {
				t.Errorf("wait %s: %d %v %s", wait, resp.Code, resp.Header(), resp.Body)
			}
			if resp := ask(h, "/a", "1"); resp.Code != http.StatusPreconditionFailed {
				t.Errorf("the token of a request that gave up does not count: %d", resp.Code)
			}
		})
	}
}

// A request inside is not cut off when the time for waiting is over.
func TestWaitIsNotForTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: time.Second, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			cause = context.Cause(r.Context())
		})}
		if resp := ask(h, "/a", "1"); resp.Code != http.StatusOK || cause != nil {
			t.Errorf("%d, the context of the effect: %v", resp.Code, cause)
		}
	})
}

// slow is a Gate that lets every request in, late.
type slow struct {
	fence.Store
	after time.Duration
	left  int
}

func (s *slow) Enter(ctx context.Context, _ string, _ locking.Token) (context.Context, func(), error) {
	time.Sleep(s.after)
	return ctx, func() { s.left++ }, nil
}

// Let in as the time runs out: the context has ended already, so out again.
func TestLetInTooLate(t *testing.T) {
	for after, want := range map[time.Duration]int{time.Second: http.StatusOK, 3 * time.Second: http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{after: after}
			h := &fence.Handler{Store: s, Resource: byPath, Wait: 2 * time.Second, Next: echo}
			if resp := ask(h, "/a", "1"); resp.Code != want || s.left != 1 {
				t.Errorf("after %s: %d, left %d times", after, resp.Code, s.left)
			}
		})
	}
}

// A client sends a body that is never read, and goes away while its request waits. net/http does
// not notice it before the body is read; the request ends all the same.
func TestClientGoesAway(t *testing.T) {
	inside, cancelled, hold, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan string, 2)
	h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: 50 * time.Millisecond, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
		close(cancelled) // so a newer request has come
		<-hold
	})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- r.Header.Get(fence.TokenHeader)
	}))
	defer server.Close()
	send := func(ctx context.Context, token string, body io.Reader) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/a", body)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set(fence.TokenHeader, token)
		if resp, err := server.Client().Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer close(hold)
	go send(t.Context(), "1", http.NoBody)
	<-inside
	go send(ctx, "2", strings.NewReader(strings.Repeat("x", 100)))
	<-cancelled
	cancel()
	select {
	case token := <-ended:
		if token != "2" {
			t.Errorf("token %s has ended", token)
		}
	case <-time.After(3 * time.Minute):
		t.Error("the client has gone, its request still waits")
	}
}
