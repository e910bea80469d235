package notify

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

const (
	// wholeEvery is the time between two looks at all jobs, ms: they find changes without a row in
	// the history.
	wholeEvery = 10 * 60 * 1000
	// changedMargin is how far before the last look changes are read, ms: masters' clocks differ.
	changedMargin = 3000
	// eventsMost bounds the events of one look, and askMost the jobs whose nodes are looked up. The
	// next look goes on.
	eventsMost = 2000
	askMost    = 1000
	// rowsLeast and rowsMost bound how many rows of a history are read.
	rowsLeast, rowsMost = 16, 2048
)

// compare compares the jobs with the notified problems, and stores the new events.
func (w *watch) compare(ctx context.Context) error {
	control, err := w.l.Control(ctx)
	if err != nil {
		return err
	}
	if m, err := ledger.ParseMove(control.Move); err != nil || m.Closes() {
		return nil //nolint:nilerr // a move closes the namespace: nothing starts here, and that is meant
	}
	at, err := w.l.Now(ctx)
	if err != nil {
		return err
	}
	now := at.UnixMilli()
	changed, known, err := query.Changed(ctx, w.l, w.looked-changedMargin)
	if err != nil {
		return err
	}
	if err := w.readStalls(ctx); err != nil {
		return err
	}
	stored, asked, err := w.read(ctx, now, changed, known)
	if err != nil {
		return err
	}
	all, err := w.facts(ctx, now, stored, func(job string) bool { return !known || changed[job] })
	if err != nil {
		return err
	}
	return w.conclude(ctx, now, all, asked)
}

// read reads the jobs to be looked at. The map has their names, including removed jobs.
func (w *watch) read(ctx context.Context, now int64, changed map[string]bool, known bool) (stored []query.Stored, asked map[string]bool, err error) {
	n, _, err := query.Count(ctx, w.l)
	if err != nil {
		return nil, nil, err
	}
	asked = make(map[string]bool)
	for job := range w.notes {
		asked[job] = true
	}
	for job := range w.stalls {
		asked[job] = true
	}
	if w.seen == nil || !known || n != len(w.seen) || now-w.whole > wholeEvery {
		w.whole = now
		for job := range w.seen {
			asked[job] = true
		}
		if stored, err = query.Entries(ctx, w.l); err != nil {
			return nil, nil, err
		}
		for _, s := range stored {
			asked[s.Job] = true
		}
	} else {
		maps.Copy(asked, changed)
		w.overdue(now, asked)
		if stored, err = query.NamedEntries(ctx, w.l, slices.Sorted(maps.Keys(asked))); err != nil {
			return nil, nil, err
		}
	}
	return stored, asked, w.define(ctx, stored)
}

// overdue adds the jobs whose ticks or successes may be late.
func (w *watch) overdue(now int64, asked map[string]bool) {
	late := w.cfg.LateAfter.Milliseconds()
	for job, s := range w.seen {
		if s.cursor != 0 && s.cursor+late <= now {
			asked[job] = true
		}
	}
	for job, d := range w.deadlines {
		if d.success+d.within < now {
			asked[job] = true
		}
	}
}

// define reads the deadlines and the stall policies of jobs with changed definitions, and the last
// success of new jobs.
func (w *watch) define(ctx context.Context, stored []query.Stored) error {
	var names []string
	for _, s := range stored {
		if was, known := w.seen[s.Job]; s.Err == nil && (!known || was.digest != digestOf(s)) {
			names = append(names, s.Job)
		}
	}
	var expecting []query.Stored
	for some := range slices.Chunk(names, 10_000) {
		defined, err := query.Named(ctx, w.l, some)
		if err != nil {
			return err
		}
		for _, s := range defined {
			var within int64
			var sharded bool
			delete(w.cancels, s.Job)
			if bytes.Contains(s.Definition, []byte(`"on_stall":"cancel"`)) {
				w.cancels[s.Job] = true
			}
			if bytes.Contains(s.Definition, []byte(`"success_within_ms"`)) {
				if d, err := jobs.ParseDefinition(s.Definition); err == nil {
					within, sharded = d.Expect.SuccessWithin.Milliseconds(), d.Shards > 1
				}
			}
			if within == 0 {
				delete(w.deadlines, s.Job)
				continue
			}
			was := w.deadlines[s.Job]
			w.deadlines[s.Job] = deadline{within, sharded, was.success}
			if was.success == 0 {
				expecting = append(expecting, s)
			}
		}
	}
	latest, _, err := inspect.ReadLatest(ctx, w.l, expecting, func(string) bool { return false })
	for _, s := range expecting {
		d := w.deadlines[s.Job]
		if d.success = latest[s.Job].Success; d.success == 0 && s.Counts[jobs.OutcomeSucceeded] > 0 {
			d.success = s.Base // it has left the history
		}
		w.deadlines[s.Job] = d
	}
	return err
}

func digestOf(s query.Stored) uint64 {
	n, _ := strconv.ParseUint(s.Digest, 16, 64) // another form makes it 0: the definition is read again and again
	return n
}

// facts collects the evidence about jobs, and reads the necessary histories.
func (w *watch) facts(ctx context.Context, now int64, stored []query.Stored, changed func(job string) bool) (map[string]facts, error) {
	all, ask := make(map[string]facts, len(stored)), []query.Stored(nil)
	var histories []string
	most := int64(rowsLeast)
	for _, s := range stored {
		if s.Err != nil {
			all[s.Job] = facts{Stored: s} // ledger verify names it
			continue
		}
		f := facts{Stored: s, now: now, looked: w.looked, note: w.notes[s.Job], lateAfter: w.cfg.LateAfter.Milliseconds(), late: w.late[s.Job], stalls: w.stalls[s.Job]}
		if was, known := w.seen[s.Job]; known {
			f.before = &was
		}
		if d, has := w.deadlines[s.Job]; has {
			f.deadline = &d
		}
		if n := f.wants(w.cancels[s.Job], changed(s.Job)); n > 0 {
			histories = append(histories, s.Job)
			most = max(most, n)
		}
		if f.isLate() && f.late && f.note.notifiedAt(Late)+f.note.notifiedAt(Overdue) == 0 && len(ask) < askMost {
			ask = append(ask, s)
		}
		all[s.Job] = f
	}
	err := query.EachTail(ctx, w.l, histories, most, func(h query.JobRows) bool {
		f := all[h.Job]
		f.rows, f.read = h.Rows, h.Err == nil
		if f.deadline != nil {
			f.deadline.success = max(f.deadline.success, successOf(h.Rows))
		}
		all[h.Job] = f
		return true
	})
	if err != nil || len(ask) == 0 {
		return all, err
	}
	return all, w.holders(ctx, all, ask)
}

// wants returns how many rows of the job's history to read, 0 for none. cancels: the job cancels
// stalled runs. The history of a job with a stall is read at each look: the end of its run may have
// been counted while the node's heartbeat still named the run.
func (f facts) wants(cancels, changed bool) int64 {
	grown := countsOf(f.Entry)
	if from := f.counted(); from != nil {
		grown = grown.since(*from)
	}
	bad := grown.bad()
	if cancels {
		bad += grown.Cancelled
	}
	succeeded := grown.Succeeded > 0 && f.counted() != nil
	stalls := len(f.stalls) > 0 || f.note.notifiedAt(Stalled) != 0
	switch {
	case bad > 0 && (f.counted() != nil || f.looked == 0 || changed), succeeded && (f.note.outcome() || stalls),
		succeeded && f.deadline != nil && f.deadline.sharded:
		return max(rowsLeast, min(rowsMost, bad+grown.Succeeded+1))
	case stalls:
		return rowsLeast
	case succeeded && f.deadline != nil:
		f.deadline.success = f.now
	}
	return 0
}

// holders looks up why no node can run jobs that are late.
func (w *watch) holders(ctx context.Context, all map[string]facts, late []query.Stored) error {
	names := make([]string, len(late))
	for i, s := range late {
		names[i] = s.Job
	}
	defined, err := query.Named(ctx, w.l, names)
	if err != nil {
		return err
	}
	held, err := inspect.Holders(ctx, w.l, w.roster, inspect.Page{Jobs: defined})
	for job, h := range held {
		f := all[job]
		f.noNode = h.NoNode
		all[job] = f
	}
	return err
}

// conclude judges the jobs and stores the results, in one step.
func (w *watch) conclude(ctx context.Context, now int64, all map[string]facts, asked map[string]bool) error {
	if w.seen == nil {
		w.seen = make(map[string]seen, len(all))
	}
	var noted []string
	events, whole := 0, true
	for _, job := range slices.Sorted(maps.Keys(asked)) {
		if events >= eventsMost {
			whole = false
			break
		}
		f, there := all[job]
		if !there {
			events += w.gone(job, now)
			noted = append(noted, job)
			continue
		}
		if f.Err != nil {
			w.seen[job] = seen{}
			continue
		}
		v := f.judge(w.namespace)
		for _, e := range v.events {
			w.enqueue(e, now)
		}
		events += len(v.events)
		if w.notes[job] = v.note; v.note == nil {
			delete(w.notes, job)
		}
		w.seen[job] = seen{f.Cursor, digestOf(f.Stored), v.counts}
		if f.deadline != nil {
			w.deadlines[job] = *f.deadline
		}
		if delete(w.late, job); f.isLate() {
			w.late[job] = true
		}
		noted = append(noted, job)
	}
	if whole {
		w.looked = now
	}
	w.forget(now)
	return w.store(ctx, noted)
}
