package opshttp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// stream reads server-sent events.
type stream struct {
	t    testing.TB
	in   *bufio.Scanner
	stop context.CancelFunc
}

type sent struct{ id, name, data string }

// listen begins to listen to events, after an event that was received already.
func (w *world) listen(after string) *stream {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 20*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+Prefix+"events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatal(resp.Status, resp.Header)
	}
	w.t.Cleanup(func() {
		stop()
		_ = resp.Body.Close()
	})
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 4<<20)
	return &stream{w.t, in, stop}
}

// next is the next event of that name.
func (s *stream) next(name string) sent {
	s.t.Helper()
	var e sent
	for s.in.Scan() {
		key, value, _ := strings.Cut(s.in.Text(), ": ")
		switch {
		case s.in.Text() == "":
			if e.name == name {
				return e
			}
			e = sent{}
		case key == "id":
			e.id = value
		case key == "event":
			e.name = value
		case key == "data":
			e.data = value
		}
	}
	s.t.Fatalf("no event %s: %v", name, s.in.Err())
	return e
}

// TestEvents: the stream has an event of a run, goes on after a listener's last event, and reports
// a gap.
func TestEvents(t *testing.T) {
	w := begin(t, Config{})
	first := w.listen("")
	first.next("nodes")
	e := first.next("runs")
	var runs []ops.RunView
	if err := json.Unmarshal([]byte(e.data), &runs); err != nil || len(runs) == 0 {
		t.Fatal(e, err)
	}
	second := w.listen(e.id) // so that a client listens all the time
	first.stop()
	missed := second.next("runs")
	again := w.listen(e.id)
	if got := again.next("runs"); got.id != missed.id {
		t.Errorf("it goes on with %s, want %s", got.id, missed.id)
	}
	for _, unknown := range []string{"other-5", "x", w.server.feed.id + "-999999"} {
		w.listen(unknown).next("gap")
	}
}

// TestEventsAreBounded: the queue of a listener is bounded, and so are the kept events.
func TestEventsAreBounded(t *testing.T) {
	f := newFeed(nil)
	for range 10 {
		if _, _, _, ok := f.listen(""); !ok {
			t.Fatal("refused")
		}
	}
	for range 2 * listenerQueue {
		f.tell("runs", make([]byte, feedKept/50))
	}
	if f.bytes > feedKept || f.bytes < feedKept*9/10 || len(f.listeners) != 0 {
		t.Errorf("%d bytes of events are kept, and %d listen that do not read", f.bytes, len(f.listeners))
	}
	if _, _, whole, _ := f.listen(f.id + "-1"); whole {
		t.Error("events are not kept any more, and nobody is told")
	}
}

// TestMarks: a mark, which is no tick, is sent too.
func TestMarks(t *testing.T) {
	f := newFeed(nil)
	l, _, _, _ := f.listen("")
	f.tellRuns(nil)
	f.tellRuns([]ops.RunView{{Job: "a", Outcome: jobs.OutcomeSuperseded}})
	if e := <-l; !strings.Contains(string(e.data), `"tick":null`) {
		t.Errorf("%s %s", e.name, e.data)
	}
}
