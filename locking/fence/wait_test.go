package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// patience sends a request while an older one is inside that heeds no context,
// and returns what is wrong with how long it waits and with its answer. Its own
// context does not end: net/http does not notice that a client has gone while
// there is a body to read.
func patience(t *testing.T, wait, want time.Duration) error {
	t.Helper()
	hold := make(chan struct{})
	h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: wait, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if token, _ := fence.TokenFrom(r.Context()); token == 1 {
			<-hold
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(h, "/a", "1")
	}()
	defer func() { close(hold); <-done }()
	synctest.Wait()
	asked := time.Now()
	resp := ask(h, "/a", "2")
	if waited := time.Since(asked); waited != want {
		return fmt.Errorf("waited %s, want %s", waited, want)
	}
	if resp.Code != http.StatusServiceUnavailable || resp.Header().Get("Retry-After") != "1" || !strings.Contains(resp.Body.String(), "a smaller token is still being served") {
		return fmt.Errorf("%d %v %s", resp.Code, resp.Header(), resp.Body)
	}
	if resp := ask(h, "/a", "1"); resp.Code != http.StatusPreconditionFailed {
		return fmt.Errorf("the token of whoever gave up does not count: %d", resp.Code)
	}
	return nil
}

func TestHandlerWaits(t *testing.T) {
	for _, c := range []struct{ wait, want time.Duration }{
		{0, fence.DefaultWait}, {-1, fence.DefaultWait}, {time.Millisecond, time.Millisecond}, {time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			if err := patience(t, c.wait, c.want); err != nil {
				t.Errorf("Wait %s: %v", c.wait, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if err := patience(t, 300*24*time.Hour, fence.DefaultWait); err == nil {
			t.Error("mutant: a handler that waits on passes")
		}
	})
}

// What was let in is not cut off when the time for waiting is over.
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

// slow is a Gate that lets everybody in, late.
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

// A client sends a body that nobody reads, and goes away while its request waits.
// net/http does not notice it before the body is read; the request ends all the same.
func TestClientGoesAway(t *testing.T) {
	inside, told, hold, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan string, 2)
	h := &fence.Handler{Store: fence.NewMemory(0), Resource: byPath, Wait: 50 * time.Millisecond, Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
		close(told) // so a newer request has come
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
	<-told
	cancel()
	select {
	case token := <-ended:
		if token != "2" {
			t.Errorf("token %s has ended", token)
		}
	case <-time.After(10 * time.Second):
		t.Error("the client has gone, its request still waits")
	}
}

// line is who waits at a gate.
type line struct {
	gate    fence.Gate
	answers chan error // of those who have waited
}

// join lets MaxWaiting wait.
func (l *line) join(ctx context.Context, token locking.Token) {
	for range fence.MaxWaiting {
		go func() {
			_, leave, err := l.gate.Enter(ctx, "a", token)
			if err == nil {
				leave()
			}
			l.answers <- err
		}()
	}
	synctest.Wait()
}

// all says whether MaxWaiting, and no more, have got this answer since.
func (l *line) all(want error) error {
	synctest.Wait()
	n, others := 0, len(l.answers)
	for range others {
		if errors.Is(<-l.answers, want) {
			n++
		}
	}
	if n != fence.MaxWaiting || n != others {
		return fmt.Errorf("%d of %d got the answer %w", n, others, want)
	}
	return nil
}

// once is one more, with a second's patience.
func (l *line) once(ctx context.Context, token locking.Token, want error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, _, err := l.gate.Enter(ctx, "a", token); !errors.Is(err, want) {
		return fmt.Errorf("one more with token %d: got %w, want %w", token, err, want)
	}
	return nil
}

// crowd holds a gate against the bound on waiting, and returns what is wrong.
func crowd(ctx context.Context, g fence.Gate) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	_, leave, err := g.Enter(ctx, "a", 5)
	if err != nil {
		return err
	}
	l := &line{g, make(chan error, 4*fence.MaxWaiting)}
	impatient, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, step := range []func() error{
		func() error { l.join(impatient, 6); return l.once(ctx, 6, fence.ErrBusy) },
		func() error { cancel(); return l.all(context.Canceled) },
		// Who has given up takes no room, and the line of an older holder keeps no newer one out.
		func() error { l.join(ctx, 6); l.join(ctx, 7); return l.all(fence.ErrStale) },
		func() error { return l.once(ctx, 7, fence.ErrBusy) },
		func() error { return l.once(ctx, 8, context.DeadlineExceeded) }, // so it has waited
		func() error { return l.all(fence.ErrStale) },
		func() error { l.join(ctx, 8); leave(); return l.all(nil) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// enters is the method Enter of a Gate.
type enters func(ctx context.Context, name string, token locking.Token) (context.Context, func(), error)

// wrong is a Memory with another Enter.
type wrong struct {
	*fence.Memory
	enter enters
}

func (w *wrong) Enter(ctx context.Context, name string, token locking.Token) (context.Context, func(), error) {
	return w.enter(ctx, name, token)
}

func TestWaitingIsBounded(t *testing.T) {
	var calls, here atomic.Int32
	for name, mutant := range map[string]func(enter enters) enters{
		"": func(enter enters) enters { return enter },
		"has no bound": func(enter enters) enters {
			return func(ctx context.Context, name string, token locking.Token) (context.Context, func(), error) {
				for {
					inside, leave, err := enter(ctx, name, token)
					if !errors.Is(err, fence.ErrBusy) {
						return inside, leave, err
					}
					if time.Sleep(time.Millisecond); ctx.Err() != nil {
						return nil, nil, ctx.Err()
					}
				}
			}
		},
		"counts who has gone": func(enter enters) enters {
			return func(ctx context.Context, name string, token locking.Token) (context.Context, func(), error) {
				if calls.Add(1) > 1+fence.MaxWaiting {
					return nil, nil, fence.ErrBusy
				}
				return enter(ctx, name, token)
			}
		},
		"keeps a newer one out": func(enter enters) enters {
			return func(ctx context.Context, name string, token locking.Token) (context.Context, func(), error) {
				defer here.Add(-1)
				if here.Add(1) > fence.MaxWaiting {
					return nil, nil, fence.ErrBusy
				}
				return enter(ctx, name, token)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := fence.NewMemory(0)
			if err := crowd(t.Context(), &wrong{m, mutant(m.Enter)}); (err == nil) != (name == "") {
				t.Errorf("a guard that %q: %v", name, err)
			}
		})
	}
}
