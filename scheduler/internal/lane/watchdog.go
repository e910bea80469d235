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

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

const (
	// stallAfter is for how long a job must have been found due, unclaimed and unheld, before that is said.
	stallAfter = 10 * time.Second
	// stallLooks is how many such jobs are looked at each time.
	stallLooks = 8
	// foundWithin is how long ago something was found last that still counts: where very much is overdue, a sweep reads a part of it. What
	// was not looked at for so long, because Redis was away, counts anew.
	foundWithin = 5 * time.Second
)

// watchdog sees, by what sweeps find, whether jobs that this node may claim stand still: due for long, and neither claimed nor held by a run; or
// held by a run whose lease has lapsed for long, and that nobody reaps. Whatever the reason: if a node knew it, there would be no need to look.
type watchdog struct {
	may  func(job string) (digest string, yes bool) // whether this node may claim a job now, and in which definition
	read func(ctx context.Context, job string) (ledger.Stored, error)
	log  *slog.Logger

	due    map[string]*found // cursors by job; as many as sweeps find
	lapsed map[string]*found // beats by run
	swept  time.Time
	looked time.Time
	behind string // the job that was looked at last

	mu    sync.Mutex
	stall error // what stands still, nil for nothing
}

// found is since when something was found with the same value, and until when.
type found struct {
	value       int64
	since, last time.Time
	alone       bool // it is left alone: its job's record is not understood
}

func newWatchdog(may func(string) (string, bool), read func(context.Context, string) (ledger.Stored, error), log *slog.Logger) *watchdog {
	return &watchdog{may: may, read: read, log: log, due: make(map[string]*found), lapsed: make(map[string]*found)}
}

// note notes that something was found.
func note(all map[string]*found, name string, value int64, now time.Time) {
	f := all[name]
	if f == nil || f.value != value {
		f = &found{value: value, since: now}
		all[name] = f
	}
	f.last = now
}

// trouble is what stands still.
func (w *watchdog) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stall
}

// sweep takes up what a sweep has found.
func (w *watchdog) sweep(ctx context.Context, f ledger.ScanResult) {
	now := time.Now()
	if now.Sub(w.swept) > foundWithin {
		clear(w.due)
		clear(w.lapsed)
		w.looked = now
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
		note(w.lapsed, l.Run, l.Beat, now)
	}
	old := func(_ string, f *found) bool { return now.Sub(f.last) > foundWithin }
	maps.DeleteFunc(w.due, old)
	maps.DeleteFunc(w.lapsed, old)
	if now.Sub(w.looked) >= stallAfter {
		w.looked = now
		w.say(errors.Join(w.unclaimed(ctx, now), w.unreaped(f.Lapsed, now)))
	}
}

// leave takes up that a lapsed run is not reaped because its job's record is not understood.
func (w *watchdog) leave(run string) {
	if f := w.lapsed[run]; f != nil {
		f.alone = true
	}
}

// unclaimed looks at some jobs that have been due for long, each time at the next ones; nil when those are held by a run, or have another
// definition than this node.
func (w *watchdog) unclaimed(ctx context.Context, now time.Time) error {
	var names []string
	for name, f := range w.due {
		if now.Sub(f.since) >= stallAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	at, _ := slices.BinarySearch(names, w.behind+"\x00")
	names = slices.Concat(names[at:], names[:at])
	stalled, example := 0, ""
	for _, name := range names[:min(len(names), stallLooks)] {
		w.behind = name
		s, err := w.read(ctx, name)
		digest, may := w.may(name)
		if err != nil || s.Err != nil || !may || s.Cursor != w.due[name].value || s.Open != "" || s.Digest != digest {
			continue // the sweep, and the job's claims, say what is wrong with it
		}
		if stalled++; example == "" {
			example = name
		}
	}
	if stalled == 0 {
		return nil
	}
	return fmt.Errorf("%d jobs at least are due, no run holds them and nobody claims them, such as %s since %s; look in the logs of the nodes that have them for a reason, and if there is none, restart these and report it",
		stalled, example, time.UnixMilli(w.due[example].value).UTC().Format(time.RFC3339))
}

// unreaped looks at leases that were seen lapsed for three times their ttl.
func (w *watchdog) unreaped(lapsed []ledger.Lease, now time.Time) error {
	for _, l := range lapsed {
		f, ttl := w.lapsed[l.Run], time.Duration(l.TTL)*time.Millisecond
		if f != nil && !f.alone && now.Sub(f.since) > max(stallAfter, 3*ttl) {
			return fmt.Errorf("run %s of job %s has lapsed, and nobody has reaped it for %s: either Redis' clock does not run steadily, or its master takes no writes for a ttl of %s",
				l.Run, l.Job, now.Sub(f.since).Round(time.Second), ttl)
		}
	}
	return nil
}

// say notes what stands still, and logs when that begins or ends.
func (w *watchdog) say(stall error) {
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
