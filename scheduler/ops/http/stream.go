package opshttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// running reports whether Run was called. A request may come a moment before.
func (f *feed) running(ctx context.Context) bool {
	late := time.NewTimer(runWithin)
	defer late.Stop()
	select {
	case <-f.started:
		return true
	case <-ctx.Done():
	case <-late.C:
	}
	return false
}

// events answers GET events. An event runs has runs that are new or have changed, nodes has all
// nodes, and gap means that some changes are not sent, because they are too many or not kept any
// more: the listener reads the lists again.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method == http.MethodHead {
		h.Set("Content-Type", eventStream)
		return
	}
	end, err := s.feed.callers.begin(s.callerOf(r))
	if err != nil {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	defer end()
	if !s.feed.running(r.Context()) {
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "no_events", Detail: "there are no events here: the program that serves has not called Server.Run"})
		return
	}
	l, since, whole, ok := s.feed.listen(r.Header.Get("Last-Event-ID"))
	if !ok {
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "no_events", Detail: "the node stops; ask another one, or again in a few seconds"})
		return
	}
	defer s.feed.leave(l)
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // for nginx, which would keep it back
	out := http.NewResponseController(w)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWithin))
		_, err := w.Write([]byte(text))
		return err == nil && out.Flush() == nil
	}
	var first strings.Builder
	first.WriteString("retry: 2000\n\n")
	if !whole {
		first.WriteString("event: gap\ndata: {}\n\n")
	}
	for _, e := range since {
		first.WriteString(s.feed.text(e))
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for ok := send(first.String()); ok; {
		select {
		case <-r.Context().Done():
			return
		case e, open := <-l:
			ok = open && send(s.feed.text(e))
		case <-alive.C:
			ok = send(": alive\n\n")
		}
	}
}

func (f *feed) text(e event) string {
	return fmt.Sprintf("id: %s-%d\nevent: %s\ndata: %s\n\n", f.id, e.n, e.name, e.data)
}
