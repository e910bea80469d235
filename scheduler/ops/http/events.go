package opshttp

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

	"github.com/escapement/escapement/scheduler/ops"
)

const (
	feedEvery     = 500 * time.Millisecond // between two looks while a client listens
	feedRuns      = 200                    // newest runs that a look compares
	feedKept      = 1 << 20                // bytes of events that can be sent again
	listenersMost = 400
	listenersEach = 20               // of one caller, see callers
	listenerQueue = 64               // events that may wait for one listener
	runWithin     = 2 * time.Second  // how long a request waits for Run to be called
	keepAlive     = 15 * time.Second // between comments that keep a connection open
	writeWithin   = 10 * time.Second // for one event
)

// event is a server-sent event.
type event struct {
	n    int64
	name string // runs, nodes or gap
	data []byte // JSON
}

// feed polls for changes, once for all listeners.
type feed struct {
	client *ops.Client
	id     string // of this process: another process' event numbers have no meaning here

	started chan struct{} // closed when run was called

	mu        sync.Mutex
	listeners map[chan event]bool // nil when the feed has ended
	callers   callers             // of the listeners
	waiters   int                 // requests that wait for the end of a run
	looked    chan struct{}       // closed at the end of the next look; nil when the feed has ended
	shown     map[string]runState // runs of the last look, by id
	kept      []event
	bytes     int           // of those
	last      int64         // number of the newest event
	wanted    chan struct{} // a client begins to listen

	runs  map[string]string // the JSON of each run in the last event
	nodes string
}

func newFeed(c *ops.Client) *feed {
	return &feed{
		client: c, id: uuid.NewString()[:8], listeners: make(map[chan event]bool), callers: callers{each: listenersEach, most: listenersMost},
		wanted: make(chan struct{}, 1), looked: make(chan struct{}), started: make(chan struct{}),
	}
}

// run looks, while a client listens, until ctx ends.
func (f *feed) run(ctx context.Context) error {
	defer f.close()
	close(f.started)
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

// idle reports whether no client listens. Changes are not sent then, so earlier events cannot be
// sent again.
func (f *feed) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listeners) > 0 || f.waiters > 0 {
		return false
	}
	f.runs, f.shown, f.nodes, f.kept, f.bytes = nil, nil, "", nil, 0
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
	close(f.looked)
	f.looked = nil
}

// look sends the changes since the last look. A failed look sends nothing; the next one sends them.
func (f *feed) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := f.client.ListRuns(ctx, ops.RunFilter{Limit: feedRuns, Recent: true})
	if err == nil || list.Items != nil && onlyLacks(err) {
		f.tellRuns(list.Items)
		f.endLook(list.Items)
	}
	if f.silent() {
		return
	}
	nodes, err := f.client.ListNodes(ctx)
	if err != nil && (nodes == nil || !onlyLacks(err)) {
		return
	}
	for i := range nodes {
		nodes[i].Seen = time.Time{} // changes with each heartbeat, and adds nothing to state
	}
	if text, err := ops.Encode(nodes); err == nil && string(text) != f.nodes {
		f.nodes = string(text)
		f.tell("nodes", text)
	}
}

// onlyLacks reports whether a list came with an error that only names what the list lacks.
func onlyLacks(err error) bool { return noteLacks(http.Header{}, err) == nil }

// silent reports whether no client listens to events: requests that wait for a run do not need the
// nodes.
func (f *feed) silent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners) == 0
}

// tellRuns sends the runs that are new or have changed. The first look sends none: a listener reads
// the lists first.
func (f *feed) tellRuns(runs []ops.RunView) {
	now, changed := make(map[string]string, len(runs)), []json.RawMessage{}
	for _, v := range runs {
		key := v.Run
		if key == "" { // ticks that did not run, or a mark, which may stand for no tick
			key = fmt.Sprint(v.Job, " ", v.Tick, " ", v.Until, " ", v.Outcome, " ", v.Reason)
		}
		still := v
		if still.Ended.IsZero() {
			still.Duration = 0 // grows
		}
		text, err := ops.Encode(still)
		if err != nil {
			continue
		}
		now[key] = string(text)
		if f.runs != nil && f.runs[key] != string(text) {
			full, _ := ops.Encode(v)
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
	if text, err := ops.Encode(changed); err == nil {
		f.tell("runs", text)
	}
}

// tell sends an event to all listeners. A slow listener is ended, and comes again with its last
// event.
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

// want makes the feed look, if it does not yet. The caller holds the lock.
func (f *feed) want() {
	select {
	case f.wanted <- struct{}{}:
	default:
	}
}

// listen begins to listen after an event, and returns the later events; whole is false when some of
// them are not kept any more. ok is false when the feed has ended.
func (f *feed) listen(after string) (l chan event, since []event, whole, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		return nil, nil, false, false
	}
	l = make(chan event, listenerQueue)
	f.listeners[l] = true
	f.want()
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
