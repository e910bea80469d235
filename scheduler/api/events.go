package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/scheduler"
)

const (
	feedEvery     = 500 * time.Millisecond // between two looks while somebody listens
	feedRuns      = 200                    // newest runs that a look compares
	feedKept      = 1 << 20                // bytes of events that can be sent again
	listenersMost = 100
	listenerQueue = 64               // events that may wait for one listener
	keepAlive     = 15 * time.Second // between comments that keep a connection open
	writeWithin   = 10 * time.Second // for one event
)

// event is a server-sent event.
type event struct {
	n    int64
	name string // runs, nodes or gap
	data []byte // JSON
}

// feed looks for what changes, once for all listeners.
type feed struct {
	client *scheduler.Client
	id     string // of this process: numbers of other ones mean nothing here

	mu        sync.Mutex
	listeners map[chan event]bool
	kept      []event
	bytes     int           // of those
	last      int64         // number of the newest event
	wanted    chan struct{} // somebody begins to listen

	runs  map[string]string // what was told of each run: its JSON
	nodes string
}

func newFeed(c *scheduler.Client) *feed {
	return &feed{client: c, id: uuid.NewString()[:8], listeners: make(map[chan event]bool), wanted: make(chan struct{}, 1)}
}

// run looks, while somebody listens, until ctx ends.
func (f *feed) run(ctx context.Context) error {
	defer f.close()
	tick := time.NewTicker(feedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if f.idle() {
			select {
			case <-ctx.Done():
				return nil
			case <-f.wanted:
			}
		}
		f.look(ctx)
	}
}

// idle reports whether nobody listens. What changes then is told to nobody, so earlier events cannot be sent again.
func (f *feed) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listeners) > 0 {
		return false
	}
	f.runs, f.nodes, f.kept, f.bytes = nil, "", nil, 0
	f.last++
	return true
}

// close ends all listeners.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		close(l)
	}
	f.listeners = nil
}

// look tells what has changed since the last look. A look that fails tells nothing; the next one will.
func (f *feed) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := f.client.List(ctx, scheduler.RunFilter{Limit: feedRuns, Recent: true})
	if err == nil {
		f.tellRuns(list.Runs)
	}
	nodes, err := f.client.Nodes(ctx)
	if err != nil {
		return
	}
	for i := range nodes {
		nodes[i].Seen = nil // changes with each heartbeat, and says no more than state
	}
	if text, err := json.Marshal(nodes); err == nil && string(text) != f.nodes {
		f.nodes = string(text)
		f.tell("nodes", text)
	}
}

// tellRuns tells the runs that are new or have changed. The first look tells none: a listener reads the lists first.
func (f *feed) tellRuns(runs []scheduler.RunView) {
	now, changed := make(map[string]string, len(runs)), []json.RawMessage{}
	for _, v := range runs {
		key := v.Run
		if key == "" { // ticks that did not run, or a mark, which may stand for no tick
			key = fmt.Sprint(v.Job, " ", v.Tick, " ", v.Until, " ", v.Outcome, " ", v.Reason)
		}
		still := v
		if still.Ended == nil {
			still.DurationMS = 0 // grows
		}
		text, err := json.Marshal(still)
		if err != nil {
			continue
		}
		now[key] = string(text)
		if f.runs != nil && f.runs[key] != string(text) {
			full, _ := json.Marshal(v)
			changed = append(changed, full)
		}
	}
	f.runs = now
	switch {
	case len(changed) == 0:
		return
	case len(changed) == feedRuns: // and perhaps more
		f.tell("gap", []byte("{}"))
		return
	}
	if text, err := json.Marshal(changed); err == nil {
		f.tell("runs", text)
	}
}

// tell sends an event to all listeners. One that is too slow is ended, and comes again with what it has.
func (f *feed) tell(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e := event{f.last, name, data}
	f.kept, f.bytes = append(f.kept, e), f.bytes+len(data)
	for f.bytes > feedKept {
		f.bytes -= len(f.kept[0].data)
		f.kept = slices.Delete(f.kept, 0, 1)
	}
	for l := range f.listeners {
		select {
		case l <- e:
		default:
			close(l)
			delete(f.listeners, l)
		}
	}
}

// listen begins to listen after an event, and returns those that have come since; whole is false when some of them are not kept any more.
func (f *feed) listen(after string) (l chan event, since []event, whole, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil || len(f.listeners) >= listenersMost {
		return nil, nil, false, false
	}
	l = make(chan event, listenerQueue)
	f.listeners[l] = true
	select {
	case f.wanted <- struct{}{}:
	default:
	}
	if after == "" {
		return l, nil, true, true
	}
	id, text, _ := strings.Cut(after, "-")
	n, err := strconv.ParseInt(text, 10, 64)
	first := f.last - int64(len(f.kept)) + 1
	if id != f.id || err != nil || n > f.last || n < first-1 {
		return l, nil, false, true
	}
	return l, append([]event(nil), f.kept[n-first+1:]...), true, true
}

func (f *feed) leave(l chan event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
}

// events answers GET events. An event runs has runs that are new or have changed, nodes has all nodes, and gap says that
// some changes are not told, because they are too many or not kept any more: the listener reads the lists again.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	l, since, whole, ok := s.feed.listen(r.Header.Get("Last-Event-ID"))
	if !ok {
		w.Header().Set("Retry-After", "10")
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Code: "too_many", Detail: "too many listen to events here, or the node stops; ask again in 10 seconds"})
		return
	}
	defer s.feed.leave(l)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
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
