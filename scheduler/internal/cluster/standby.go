package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A node whose generation is not the active one is on standby: it is in the roster and ready,
// stores its definitions, which no entry names, and claims nothing. A single job is on standby when
// a promotion by pattern has given it to another generation.
//
//	             all its jobs are another generation's
//	registered ─────────────────────────────────────────► standby
//	    ▲                                                    │
//	    └──── a promotion has made one of them its own ◄─────┘
//
// Only a job's stored definition, which carries the generation, makes a node claim: the claim
// script compares digests. This file decides how soon a node learns that there is something to
// claim. It reads the control record every standbyCheckEvery while it has jobs on standby, and
// tries them when the record shows another epoch or a promotion under way.
const (
	standbyCheckEvery = 250 * time.Millisecond
	// standbyTTL is how often jobs on standby are tried in any case, because the control record may
	// have been lost.
	standbyTTL = time.Minute
	// slowest is how rarely jobs on standby are tried during a promotion that is never completed.
	slowest = 5 * time.Second
	// triesEvery is how often unclaimable jobs are tried at most when the roster changes.
	triesEvery = time.Second
)

// scope is which unclaimable jobs are tried.
type scope int

const (
	tryNone       scope = iota
	tryNonStandby       // jobs that are not on standby
	tryAll
)

// waiting decides when unclaimable jobs are tried next.
type waiting struct {
	checks    bool      // a job is on standby, or a promotion is under way
	some      bool      // a job is on standby
	next      time.Time // when those not on standby are tried
	all       time.Time // when those on standby are tried in any case
	took      time.Duration
	tries     time.Time // when any were last tried
	epoch     int64     // of the last promotion that was seen
	promoting string
	since     time.Time // when that was first seen
	last      time.Time // when those on standby were last tried
}

// due is the scope whose time has come.
func (w *waiting) due() scope {
	switch now := time.Now(); {
	case !now.Before(w.all):
		return tryAll
	case !now.Before(w.next):
		return tryNonStandby
	}
	return tryNone
}

// tried notes which scope was tried, and how long that took.
func (w *waiting) tried(what scope, took time.Duration) {
	now := time.Now()
	if what >= tryNonStandby {
		w.tries = now
		w.next = now.Add(RosterTTL - standbyCheckEvery/2) // the timer that finds it due is not later than that
	}
	if what == tryAll {
		w.last, w.took, w.all = now, took, now.Add(standbyTTL)
	}
}

// soon is how long to wait before an early try; 0 when it may be made now.
func (w *waiting) soon() time.Duration {
	wait := max(0, time.Until(w.tries.Add(triesEvery)))
	if wait > 0 {
		w.next = time.Now().Add(wait)
	}
	return wait
}

// seen notes the control record and reports whether jobs on standby are to be tried: at once when
// it has changed, and during a promotion more and more rarely, so that trying takes only a part of
// the time.
func (w *waiting) seen(c ledger.Control) bool {
	now := time.Now()
	if c.Epoch != w.epoch || c.Promoting != w.promoting {
		w.epoch, w.promoting, w.since = c.Epoch, c.Promoting, now
		return true
	}
	if c.Promoting == "" {
		return false
	}
	every := min(max(standbyCheckEvery, now.Sub(w.since)/8, 4*w.took), slowest)
	return now.Sub(w.last) >= every-standbyCheckEvery/2
}

// widen reads the control record, and includes jobs on standby when a promotion may have changed
// them.
func (r *registrar) widen(ctx context.Context, what scope) (scope, error) {
	if !r.waiting.checks {
		return what, nil
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	c, err := r.ledger.Control(call)
	err = r.record.missing(err)
	if errors.Is(err, ledger.ErrNoNamespace) && !errors.Is(err, ledger.ErrClosed) {
		return tryAll, nil // the registrar writes it again
	}
	if err != nil {
		return what, err
	}
	r.state.Control.Store(&c)
	if !r.waiting.seen(c) {
		return what, nil
	}
	return tryAll, r.revise(ctx)
}

// revise marks registered jobs as displaced of which another definition is stored by now. Without a
// promotion, a node learns that from its claims.
func (r *registrar) revise(ctx context.Context) error {
	var names []string
	for _, j := range r.jobs.All() {
		if r.unclaimable[j] == "" {
			names = append(names, j.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	stored, err := query.Digests(call, r.ledger, names)
	r.unreachable(&err)
	if err != nil {
		return err
	}
	var gone []*work.Job
	for _, j := range r.jobs.All() {
		if digest := stored[j.Name]; r.unclaimable[j] == "" && digest != "" && digest != j.Digest {
			r.unclaimable[j] = work.Displaced
			gone = append(gone, j)
		}
	}
	r.inbox.Send(agenda.Displaced{Jobs: gone})
	return nil
}

// pace is how long the registrar waits. It waits less while it looks for promotions.
func (r *registrar) pace() time.Duration {
	if r.waiting.checks {
		return standbyCheckEvery
	}
	return RosterTTL
}

// count counts the unclaimable jobs by the reason, and publishes that.
func (r *registrar) count() map[string]int {
	by := make(map[string]int)
	for _, why := range r.unclaimable {
		by[why]++
	}
	r.state.Unclaimable.Store(&by)
	r.state.Tried.Store(int64(len(r.has) - by[work.Unregistered]))
	return by
}

// noteStandby determines which jobs are on standby, and logs a change.
func (r *registrar) noteStandby() {
	on := r.count()[work.Standby]
	w, was := &r.waiting, r.state.Standby.Load()
	some := w.some
	w.some = on > 0
	w.checks = on > 0 || w.promoting != ""
	idle := on > 0 && on == r.jobs.Len()
	r.state.Standby.Store(idle)
	switch active := r.record.active(); {
	case idle && !was:
		r.log.Info("on standby: another generation is active; nothing is claimed until this one is promoted", "active", active, "generation", r.generation, "jobs", on)
	case !idle && was:
		r.log.Info("not on standby any more: jobs of this generation are claimed", "generation", r.generation, "jobs", r.jobs.Len()-len(r.unclaimable))
	case on > 0 && !some && !idle:
		r.log.Info("jobs on standby: another generation runs them", "active", active, "generation", r.generation, "jobs", on, "of", r.jobs.Len())
	}
	if idle != was {
		wait.Signal(r.beat) // the roster must show it
	}
}

// storeStandby stores the definitions of jobs on standby, once each. No entry names them, but a
// promotion may.
func (r *registrar) storeStandby(ctx context.Context) error {
	maps.DeleteFunc(r.stored, func(j *work.Job, _ bool) bool { return r.unclaimable[j] != work.Standby })
	var list []*work.Job
	for j, why := range r.unclaimable {
		if why == work.Standby && !r.stored[j] {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	for batch := range work.Batches(list, ledger.BatchMax, func(j *work.Job) int { return j.Part }) {
		byDigest, digests := make(map[string]*work.Job, len(batch)), make([]string, len(batch))
		for i, j := range batch {
			byDigest[j.Digest], digests[i] = j, j.Digest
		}
		err := r.lanes.At("register", batch[0].Part, func() error {
			call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
			defer cancel()
			return define.Store(call, r.ledger, batch[0].Part, digests, func(digest string) ([]byte, error) { return definitionText(byDigest[digest]) })
		})
		if errors.Is(err, lane.ErrBreaker) {
			continue
		}
		if err != nil {
			return err
		}
		for _, j := range batch {
			r.stored[j] = true
		}
	}
	return nil
}

// definitionText is a job's definition as it is stored.
func definitionText(j *work.Job) ([]byte, error) {
	raw, err := json.Marshal(j.Def)
	if err != nil {
		return nil, fmt.Errorf("definition of job %s: %w", j.Name, err)
	}
	return raw, nil
}
