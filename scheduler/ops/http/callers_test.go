package opshttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/ops"
)

// One caller takes no more than its share, and gives back what it took.
func TestCallers(t *testing.T) {
	c := callers{each: 2, most: 3}
	begin := func(caller string, ok bool) func() {
		t.Helper()
		end, err := c.begin(caller)
		if (err == nil) != ok || err != nil && !errors.As(err, new(tooMany)) {
			t.Fatalf("%s: %v", caller, err)
		}
		return end
	}
	first := begin("a", true)
	begin("a", true)
	begin("a", false)
	second := begin("b", true)
	begin("c", false)
	first()
	first() // twice is once
	begin("a", true)
	second()
	begin("c", true)
	if len(c.open) != 2 || c.all != 3 {
		t.Errorf("%v, %d in all", c.open, c.all)
	}
	c = callers{each: 1, most: 6}
	for range 4 { // a proxy's users are one caller, which gets half of the places and one more
		begin("proxy", true)
	}
	begin("proxy", false)
	begin("b", true)
	begin("b", false)
	begin("c", true)
	begin("d", false)
}

// A caller is an address, and whom it has proved to be.
func TestWhoCalls(t *testing.T) {
	for _, tt := range []struct {
		access     Access
		addr, name string
		want       string
	}{
		{Access{}, "10.0.0.7:1234", "ann", "10.0.0.7"},
		{Access{Tokens: map[string]Identity{"t": {}}}, "10.0.0.7:1234", "ann", "ann at 10.0.0.7"},
		{Access{}, "[::1]:1234", "", "::1"},
	} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		r.RemoteAddr = tt.addr
		r = r.WithContext(context.WithValue(r.Context(), identityKey{}, Identity{Name: tt.name}))
		if got := New(nil, Config{Access: tt.access}).callerOf(r); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// fill opens as many requests as a caller may have while half of all places are taken.
func fill(t *testing.T, c *callers, caller string) {
	t.Helper()
	for i := range c.most/2 + c.each {
		who := fmt.Sprint("other ", i)
		if i >= c.most/2 {
			who = caller
		}
		if _, err := c.begin(who); err != nil {
			t.Fatal(err)
		}
	}
}

// A caller with many streams of events is refused a further one, while another caller is served;
// without Run there are no events.
func TestStreamsOfOneCaller(t *testing.T) {
	s := New(nil, Config{})
	fill(t, &s.feed.callers, "192.0.2.1")
	ask := func(addr string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+Prefix+"events", nil)
		r.RemoteAddr = addr + ":1"
		s.ServeHTTP(w, r)
		return w
	}
	if w := ask("192.0.2.1"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", w.Code, w.Header())
	}
	if w := ask("192.0.2.2"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "has not called Server.Run") {
		t.Errorf("another caller, without Run: %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodHead, "http://localhost"+Prefix+"events", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != eventStream {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ended); err != nil {
		t.Error(err)
	}
	if err := s.Run(ended); err == nil || !strings.Contains(err.Error(), "was called before") {
		t.Errorf("Run again: %v", err)
	}
}

// counting counts the commands of a client.
type counting struct{ n atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// Many requests that wait for one run cost Redis no more than one, and all are answered at its end.
func TestWaitersLookTogether(t *testing.T) {
	w := begin(t, Config{})
	var count counting
	own := w.redis.Client()
	defer own.Close()
	own.AddHook(&count)
	admin, err := ops.New(own, "")
	if err != nil {
		t.Fatal(err)
	}
	s := New(admin, Config{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	feed := make(chan error, 1)
	go func() { feed <- s.Run(ctx) }()
	run, err := w.client.Trigger(ctx, "slow", ops.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("the run goes on", func() bool { v, err := w.client.GetRun(ctx, run); return err == nil && !v.Started.IsZero() })
	ended := make(chan string, 2*waitsEach)
	wait := func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+Prefix+"runs/"+run+"?wait_ms=8000", nil)
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		ended <- fmt.Sprint(answer.Code, strings.Contains(answer.Body.String(), `"outcome":"cancelled"`))
	}
	costOfLooks := func(waiters int) int64 {
		w.eventually("they wait", func() bool {
			s.feed.mu.Lock()
			defer s.feed.mu.Unlock()
			return s.feed.waiters == waiters && s.feed.shown[run] == runGoing
		})
		var before int64
		for k := range 4 { // the first looks find the new waiters
			if k == 2 {
				before = count.n.Load()
			}
			_, looked := s.feed.lastLook()
			<-looked
		}
		return count.n.Load() - before
	}
	go wait()
	one := costOfLooks(1)
	for range waitsEach - 1 {
		go wait()
	}
	if many := costOfLooks(waitsEach); many > 2*one {
		t.Errorf("two looks cost %d commands with %d who wait, and %d with one", many, waitsEach, one)
	}
	for i := range waitsMost / 2 {
		if _, err := s.waits.begin(fmt.Sprint("other ", i)); err != nil {
			t.Fatal(err)
		}
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+Prefix+"runs/"+run+"?wait_ms=8000", nil)
	refused := httptest.NewRecorder()
	if s.ServeHTTP(refused, r); refused.Code != http.StatusTooManyRequests {
		t.Errorf("one more: %d %s", refused.Code, refused.Body)
	}
	if _, err := w.client.Cancel(ctx, run, ops.CancelOptions{}); err != nil {
		t.Fatal(err)
	}
	for range waitsEach {
		if got := <-ended; got != "200true" && got != "200 true" {
			t.Errorf("who waits is told %s", got)
		}
	}
	stop()
	if err := <-feed; err != nil {
		t.Error(err)
	}
}
