package notify

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// margin is how long before the last look a run may have ended whose row came after the look, ms.
const margin = 10_000

// seen is a job's state at the last look.
type seen struct {
	cursor int64
	digest uint64
	counts counts
}

// deadline is a job's Expect.
type deadline struct {
	within  int64 // ms
	sharded bool
	success int64 // the last success, or the start of the history if it has left it, ms
}

// facts are a look's evidence about one job. The verdict follows from the facts alone.
type facts struct {
	query.Stored
	now, looked int64 // this look and the last one, which may be another notifier's, ms; looked is 0 before the first ever
	before      *seen // nil for a job that this notifier sees for the first time
	note        *note // nil for a job that is well
	rows        []ledger.Row
	read        bool // rows are the newest of the history
	deadline    *deadline
	lateAfter   int64  // ms
	late        bool   // it was late at the last look too
	noNode      string // why no node can run it
	stalls      []stall
}

// verdict is the result for one job.
type verdict struct {
	events []Event
	note   *note // nil for none
	counts counts
}

// judge decides which events of a job to notify.
func (f facts) judge(namespace string) verdict {
	n := note{Told: make(map[Kind]int64)}
	if f.note != nil {
		n = *f.note
		n.Told = make(map[Kind]int64, len(f.note.Told))
		for k, at := range f.note.Told {
			n.Told[k] = at
		}
	}
	v := verdict{counts: countsOf(f.Entry)}
	emit := func(e Event) {
		e.Job, e.At, e.Key = f.Job, instant(f.now), namespace+"/"+f.Job+"/"+string(e.Kind)
		e.Error = line(e.Error, errorMost)
		if e.Recovered {
			e.Since = stampOf(n.Told[e.Kind])
			delete(n.Told, e.Kind)
		} else if n.Told[e.Kind] == 0 { // another stall may be notified
			n.Told[e.Kind] = f.now
		}
		e.Text = e.sentence()
		v.events = append(v.events, e)
	}
	f.outcomes(&v, &n, emit)
	f.stalled(&n, emit)
	f.lateness(emit)
	f.successes(&n, emit)
	if len(v.events) > 0 {
		n.Counts = v.counts
	}
	switch {
	case len(n.Told) > 0:
		n.Well = 0
	case f.note == nil && len(v.events) == 0 && n.From == 0:
		return v // it was well, and is
	case n.Well == 0:
		n.Well = f.now
	case f.now-n.Well > keepWell && n.From == 0:
		return v
	}
	v.note = &n
	return v
}

// outcomes derives events from the ends of runs and ticks since the last look.
func (f facts) outcomes(v *verdict, n *note, emit func(Event)) {
	if !f.read {
		return
	}
	last, sharded := Kind(""), false // of the newest row that is good or bad; "" for good
	decided := false
	newest := make(map[Kind]*ledger.Row)
	for i := range slices.Backward(f.rows) {
		r := &f.rows[i]
		if r.TickID != "" || r.Shards > 1 && !r.IsTick { // a shard: its tick counts
			sharded = true
			continue
		}
		kind := kindOf(r.Outcome)
		if kind == "" && r.Outcome != jobs.OutcomeSucceeded || r.Ranged && r.Count == 0 {
			continue
		}
		if !decided {
			last, decided = kind, true
		}
		if kind != "" && newest[kind] == nil {
			newest[kind] = r
		}
	}
	grown := v.counts
	if from := f.counted(); from != nil {
		grown = v.counts.since(*from)
	}
	for _, kind := range outcomeKinds {
		r := newest[kind]
		if n.Told[kind] != 0 || grown.of(kind) == 0 {
			continue
		}
		if isNew := f.isNew(r, kind, last, sharded, n.Last); !isNew {
			if sharded && f.counted() != nil { // the tick of that shard goes on
				v.counts = v.counts.without(kind, grown.of(kind))
			}
			continue
		}
		emit(eventOf(kind, r, grown.of(kind), f.counted() != nil))
		if r != nil {
			n.Last = nameOf(r)
		}
	}
	if decided && last == "" {
		for _, kind := range outcomeKinds {
			if n.Told[kind] != 0 {
				emit(Event{Kind: kind, Recovered: true, Error: "a run has succeeded"})
			}
		}
	}
}

// counted returns the counts up to which events were notified; nil when unknown.
func (f facts) counted() *counts {
	switch {
	case f.before != nil:
		return &f.before.counts
	case f.note != nil:
		return &f.note.Counts
	}
	return nil
}

// isNew reports whether the newest row of a kind, nil for none, was not notified before, though
// more of the kind have been counted.
func (f facts) isNew(r *ledger.Row, kind, last Kind, sharded bool, notified string) bool {
	switch {
	case f.counted() == nil && f.looked == 0: // the first look ever: only the job's current state
		return r != nil && kind == last
	case r == nil:
		return !sharded && f.counted() != nil // its row has left the history already
	case nameOf(r) == notified:
		return r.Ranged // the range has grown
	case f.counted() == nil || sharded:
		return r.At >= f.looked-margin
	}
	return true
}

// without is the counts as if some of a kind had not been counted yet.
func (c counts) without(kind Kind, n int64) counts {
	switch kind {
	case Failed:
		c.Failed -= n
	case Abandoned:
		c.Abandoned -= n
	default:
		c.Missed -= n
	}
	return c
}

// nameOf names the run or the ticks of a row.
func nameOf(r *ledger.Row) string {
	return cmp.Or(r.Run, "ticks from "+strconv.FormatInt(r.Tick, 10))
}

func eventOf(kind Kind, r *ledger.Row, n int64, counted bool) Event {
	e := Event{Kind: kind, Count: n}
	if r == nil {
		return e
	}
	if !counted {
		e.Count = max(1, r.Count)
	}
	e.Tick, e.Run, e.Node, e.Outcome, e.Error = stampOf(r.Tick), r.Run, r.NodeName, r.Outcome.String(), r.Error
	if kind == Missed {
		e.Error = strings.TrimSpace(r.Reason + " " + r.Note)
	}
	return e
}

// isLate reports whether a tick is due for longer than lateAfter, without an answer. A job that is
// held waits by its own rules.
func (f facts) isLate() bool {
	due := f.Cursor
	if f.Pause.Holds(due) {
		due = f.Pause.To // until then no tick runs; 0 for a pause without an end
	}
	return due != 0 && due+f.lateAfter <= f.now
}

// lateness derives events of a tick without an answer. The kind stays as it was first notified.
func (f facts) lateness(emit func(Event)) {
	late := f.isLate()
	for _, kind := range []Kind{Late, Overdue} {
		if f.note.notifiedAt(kind) == 0 {
			continue
		}
		if late {
			return
		}
		why := "its tick is answered"
		if f.Pause.Holds(f.now) {
			why = "it is paused"
		}
		emit(Event{Kind: kind, Recovered: true, Error: why})
		return
	}
	switch {
	case !late || !f.late: // it must be so twice: nodes may just be starting
	case f.noNode != "":
		emit(Event{Kind: Overdue, Tick: stampOf(f.Cursor), Count: 1, Error: f.noNode})
	case f.HolderRun == "":
		emit(Event{Kind: Late, Tick: stampOf(f.Cursor), Count: 1, Error: "it has been due for " + spell(f.now-f.Cursor)})
	}
}

// successes derives events of a job without a success in time.
func (f facts) successes(n *note, emit func(Event)) {
	d, notified := f.deadline, f.note.notifiedAt(NoSuccess)
	if d == nil {
		n.From = 0
		if notified != 0 {
			emit(Event{Kind: NoSuccess, Recovered: true, Error: "it has no deadline any more"})
		}
		return
	}
	from := max(d.success, n.Success, n.From)
	if from == 0 {
		n.From, from = f.now, f.now // no success is known: it counts from now on
	}
	if d.success > n.From {
		n.From = 0
	}
	if f.Pause.To != 0 && f.Pause.To <= f.now {
		from = max(from, f.Pause.To)
	}
	late := from+d.within < f.now
	switch {
	case late && notified == 0 && !f.Pause.Holds(f.now):
		n.Success = max(n.Success, d.success)
		since := "the last success was at " + stampOf(from).String()
		if d.success == 0 && n.Success == 0 {
			since = "none since " + stampOf(from).String()
		}
		emit(Event{Kind: NoSuccess, Count: 1, Error: since + ", and one is expected within " + spell(d.within)})
	case !late && notified != 0:
		n.Success = 0
		emit(Event{Kind: NoSuccess, Recovered: true, Error: "a run has succeeded"})
	}
}

// spell renders a duration: "26h", "1m30s".
func spell(ms int64) string {
	text := redisconn.Duration(ms, time.Millisecond).Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
