package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A node whose generation is not the active one is on standby: it is in the roster and ready, stores its definitions, which
// no entry names, and claims nothing. So is a single job that a promotion by pattern has given to another generation.
//
//	             all its jobs are another generation's
//	registered ─────────────────────────────────────────► standby
//	    ▲                                                    │
//	    └──── a promotion has made one of them its own ◄─────┘
//
// What makes a node claim is the stored definition of a job alone, which carries the generation: the claim script compares
// digests. All that is here is how soon a node learns that there is something to claim. It reads the control record every
// lookEvery while it has jobs on standby; when that shows another epoch, or a promotion under way, it tries them.
const (
	lookEvery = 250 * time.Millisecond
	// standbyTTL is how often jobs on standby are tried when there is no hope, in case that the control record was lost.
	standbyTTL = time.Minute
	// slowest is how rarely jobs on standby are tried while a promotion is under way that nobody brings to its end.
	slowest = 5 * time.Second
	// triesEvery is how often jobs outside are tried at most when the roster gives hope.
	triesEvery = time.Second
)

// scope is which of the jobs that are outside are tried.
type scope int

const (
	tryNone    scope = iota
	tryOutside       // those that are not on standby
	tryAll
)

// waiting is when jobs that are outside are tried next.
type waiting struct {
	looks     bool      // some job is on standby, or a promotion is under way
	some      bool      // some job is on standby
	next      time.Time // when those that are not are tried
	all       time.Time // when those on standby are tried, hope or not
	took      time.Duration
	tries     time.Time // when any were tried last
	epoch     int64     // of the last promotion that was seen
	promoting string
	since     time.Time // when that was seen first
	last      time.Time // when those on standby were tried last
}

// over says what is to be tried because its time has come.
func (w *waiting) over() scope {
	switch now := time.Now(); {
	case !now.Before(w.all):
		return tryAll
	case !now.Before(w.next):
		return tryOutside
	}
	return tryNone
}

// tried notes what was tried, and how long that took.
func (w *waiting) tried(what scope, took time.Duration) {
	now := time.Now()
	if what >= tryOutside {
		w.tries = now
		w.next = now.Add(RosterTTL - lookEvery/2) // the timer that finds it over is not later than that
	}
	if what == tryAll {
		w.last, w.took, w.all = now, took, now.Add(standbyTTL)
	}
}

// soon is how long to wait until jobs outside may be tried though their time has not come, 0 for not at all.
func (w *waiting) soon() time.Duration {
	wait := max(0, time.Until(w.tries.Add(triesEvery)))
	if wait > 0 {
		w.next = time.Now().Add(wait)
	}
	return wait
}

// seen takes up the control record and says whether jobs on standby are to be tried: at once when it has changed, and
// while a promotion is under way ever more rarely, as it goes on, and never so that trying takes more than a part of the time.
func (w *waiting) seen(c ledger.Control) bool {
	now := time.Now()
	if c.Epoch != w.epoch || c.Promoting != w.promoting {
		w.epoch, w.promoting, w.since = c.Epoch, c.Promoting, now
		return true
	}
	if c.Promoting == "" {
		return false
	}
	every := min(max(lookEvery, now.Sub(w.since)/8, 4*w.took), slowest)
	return now.Sub(w.last) >= every-lookEvery/2
}

// hope is what to try, after a look at the control record: also what is on standby, if a promotion may have changed that.
func (r *registrar) hope(ctx context.Context, what scope) (scope, error) {
	if !r.waiting.looks {
		return what, nil
	}
	call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
	defer cancel()
	c, err := r.n.Ledger.Control(call)
	if errors.Is(err, ledger.ErrNoNamespace) && !r.n.Moves.isClosed() {
		return tryAll, nil // it is written again
	}
	err = r.missing(err)
	if err != nil {
		return what, err
	}
	r.n.Standing.Control.Store(&c)
	if !r.waiting.seen(c) {
		return what, nil
	}
	return tryAll, r.revise(ctx)
}

// revise puts jobs outside that are registered and of which another definition is stored by now. Without a promotion, who
// goes first for a job learns that from its claims, and nobody else needs to know.
func (r *registrar) revise(ctx context.Context) error {
	var names []string
	for _, j := range r.n.Jobs.All() {
		if r.outside[j] == "" {
			names = append(names, j.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
	defer cancel()
	stored, err := r.n.Ledger.Digests(call, names)
	r.unheard(&err)
	if err != nil {
		return err
	}
	var gone []*work.Job
	for _, j := range r.n.Jobs.All() {
		if digest := stored[j.Name]; r.outside[j] == "" && digest != "" && digest != j.Digest {
			r.outside[j] = work.Displaced
			gone = append(gone, j)
		}
	}
	r.n.Inbox.Send(agenda.Displaced{Jobs: gone})
	return nil
}

// pace is how long the registrar waits, and whether it looks for promotions meanwhile.
func (r *registrar) pace() time.Duration {
	if r.waiting.looks {
		return lookEvery
	}
	return RosterTTL
}

// stands works out what is on standby, and says so once.
func (r *registrar) stands() {
	on := 0
	for _, why := range r.outside {
		if why == work.Standby {
			on++
		}
	}
	w, was := &r.waiting, r.idle.Load()
	some := w.some
	w.some = on > 0
	w.looks = on > 0 || w.promoting != ""
	idle := on > 0 && on == r.n.Jobs.Len()
	r.idle.Store(idle)
	switch active := r.active(); {
	case idle && !was:
		r.n.Log.Info("on standby: another generation is active; nothing is claimed until this one is promoted", "active", active, "generation", r.n.Generation, "jobs", on)
	case !idle && was:
		r.n.Log.Info("not on standby any more: jobs of this generation are claimed", "generation", r.n.Generation, "jobs", r.n.Jobs.Len()-len(r.outside))
	case on > 0 && !some && !idle:
		r.n.Log.Info("jobs on standby: another generation runs them", "active", active, "generation", r.n.Generation, "jobs", on, "of", r.n.Jobs.Len())
	}
	if idle != was {
		wait.Signal(r.n.Beat) // the roster says so
	}
}
