package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

const (
	// stallAfter is how long a job must be due, unclaimed and unheld, before that is logged.
	stallAfter = 10 * time.Second
	// stallLooks bounds the jobs that are checked each time.
	stallLooks = 8
	// foundWithin is how long a finding counts: of many overdue jobs, a sweep reads only a part.
	// After a longer gap between sweeps, as in an outage, all findings start anew.
	foundWithin = 5 * time.Second
)

// watchdog finds jobs that stand still although this node may claim them, from the sweeps' results:
// jobs that are due for long and neither claimed nor held, and lapsed leases that are not reaped.
// It does not depend on the reason.
type watchdog struct {
	may  func(job string) (digest string, yes bool) // whether this node may claim a job now, and in which definition
	read func(ctx context.Context, job string) (query.Stored, error)
	log  *slog.Logger

	due         map[string]*finding // cursors by job; at most as many as sweeps find
	lapsed      map[string]*finding // beats by run
	swept       time.Time
	checked     time.Time
	lastChecked string // the job that was checked last

	mu    sync.Mutex
	stall error // names the jobs that stand still; nil for none
}

// finding is how long something has been found with the same value.
type finding struct {
	value         int64
	since, last   time.Time
	unknownFormat bool // of its job's record: the run is left alone
}

func newWatchdog(may func(string) (string, bool), read func(context.Context, string) (query.Stored, error), log *slog.Logger) *watchdog {
	return &watchdog{may: may, read: read, log: log, due: make(map[string]*finding), lapsed: make(map[string]*finding)}
}

// note notes a finding.
func note(all map[string]*finding, name string, value int64, now time.Time) {
	f := all[name]
	if f == nil || f.value != value {
		f = &finding{value: value, since: now}
		all[name] = f
	}
	f.last = now
}

// err names the jobs and runs that stand still.
func (w *watchdog) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stall
}

// sweep notes a sweep's results.
func (w *watchdog) sweep(ctx context.Context, f query.ScanResult) {
	now := time.Now()
	if now.Sub(w.swept) > foundWithin {
		clear(w.due)
		clear(w.lapsed)
		w.checked = now
	}
	w.swept = now
	for _, l := range f.Late {
		if _, may := w.may(l.Job); may {
			note(w.due, l.Job, l.Cursor, now)
		} else {
			delete(w.due, l.Job)
		}
	}
	for _, l := range f.Lapsed {
		note(w.lapsed, l.ID, l.Beat, now)
	}
	old := func(_ string, f *finding) bool { return now.Sub(f.last) > foundWithin }
	maps.DeleteFunc(w.due, old)
	maps.DeleteFunc(w.lapsed, old)
	if now.Sub(w.checked) >= stallAfter {
		w.checked = now
		w.report(errors.Join(w.unclaimed(ctx, now), w.unreaped(f.Lapsed, now)))
	}
}

// ignore notes that a lapsed run is not reaped because its job's record has an unknown format.
func (w *watchdog) ignore(run string) {
	if f := w.lapsed[run]; f != nil {
		f.unknownFormat = true
	}
}

// unclaimed checks some jobs that have been due for long, each time the next ones. A job does not
// count that a run holds, or whose stored definition is another than this node's.
func (w *watchdog) unclaimed(ctx context.Context, now time.Time) error {
	var names []string
	for name, f := range w.due {
		if now.Sub(f.since) >= stallAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	at, _ := slices.BinarySearch(names, w.lastChecked+"\x00")
	names = slices.Concat(names[at:], names[:at])
	stalled, example := 0, ""
	for _, name := range names[:min(len(names), stallLooks)] {
		w.lastChecked = name
		s, err := w.read(ctx, name)
		digest, may := w.may(name)
		if err != nil || s.Err != nil || !may || s.Cursor != w.due[name].value || s.HolderRun != "" || s.Digest != digest {
			continue // the sweep, or the job's claims, report its error
		}
		if stalled++; example == "" {
			example = name
		}
	}
	if stalled == 0 {
		return nil
	}
	return fmt.Errorf("%d jobs at least are due, and no run holds them and no node claims them, such as %s since %s; look for a reason in the logs of the nodes that have them; if there is none, restart these nodes and report it",
		stalled, example, time.UnixMilli(w.due[example].value).UTC().Format(time.RFC3339))
}

// unreaped finds a lease that has been lapsed for three times its ttl.
func (w *watchdog) unreaped(lapsed []ledger.Run, now time.Time) error {
	for _, l := range lapsed {
		f, ttl := w.lapsed[l.ID], redisconn.Duration(l.TTL, time.Millisecond)
		if f != nil && !f.unknownFormat && now.Sub(f.since) > max(stallAfter, 3*min(ttl, 24*time.Hour)) {
			return fmt.Errorf("run %s of job %s has lapsed, and nobody has reaped it for %s: Redis' clock does not run steadily, or its master has taken no writes for a ttl of %s",
				l.ID, l.Job, now.Sub(f.since).Round(time.Second), ttl)
		}
	}
	return nil
}

// report notes the stall, and logs its beginning and end.
func (w *watchdog) report(stall error) {
	w.mu.Lock()
	was := w.stall
	w.stall = stall
	w.mu.Unlock()
	switch {
	case stall != nil && (was == nil || was.Error() != stall.Error()):
		w.log.Error("jobs stand still", "error", stall)
	case stall == nil && was != nil:
		w.log.Info("no job stands still any more")
	}
}
