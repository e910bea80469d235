package ledger

import (
	"slices"
	"testing"
)

func (w *world) trigger(tb testing.TB, o op) op {
	tb.Helper()
	if len(w.triggers) > 0 && w.chance(45) {
		if again := pick(w, w.triggers); w.remembered(tb, again) {
			return again
		}
	}
	o.kind, o.job = "trigger", pick(w, jobNames)
	o.trigger.Run = w.id("t")
	o.trigger.Payload = pick(w, [][]byte{nil, []byte("p"), []byte("a|b\n|\x00\xff"), []byte(`{"n":1763726400123456}`)})
	if w.chance(20) {
		o.trigger.At = w.ms() + w.rng.Int64N(20_000) - 5000
	}
	if w.chance(20) {
		o.trigger.Unique = w.id("key") // asked for again only while it is remembered
	}
	w.triggers = remember(w.triggers, o, 25)
	return o
}

// remembered says whether the ledger can still know a request: a repeated one is the same run as
// long as the run is in flight or its row in the history.
func (w *world) remembered(tb testing.TB, o op) bool {
	tb.Helper()
	if _, known := w.view.jobs[o.job]; !known {
		return true
	}
	id := o.trigger.Run
	if o.trigger.Unique != "" {
		id = UniqueRun(o.job, o.trigger.Unique)
	}
	asked := func(l Lease) bool { return l.Run == id || l.Request == id }
	if slices.ContainsFunc(w.view.leased, asked) || slices.ContainsFunc(w.view.pending, asked) {
		return true
	}
	return slices.ContainsFunc(w.rows(tb, o.job), func(r Row) bool { return r.Run == id || r.Request == id })
}

func (w *world) rows(tb testing.TB, job string) []Row {
	tb.Helper()
	rows, _, err := w.rig.led.History(tb.Context(), []string{job})
	if err != nil {
		tb.Fatal(err)
	}
	return rows[job]
}

// operate is what an operator does, and what is done for jobs that follow others.
func (w *world) operate(tb testing.TB, o op) (op, bool) {
	tb.Helper()
	n := w.rng.IntN(100)
	for _, c := range []struct {
		below int
		kind  string
	}{{12, "cancel"}, {24, "rerun"}, {31, "pause"}, {38, "resume"}, {54, "rewind"}, {56, "remove"}, {68, "follow"}, {95, "relay"}} {
		if n < c.below {
			return w.oneOf(tb, c.kind, o)
		}
	}
	return w.oneOf(tb, "postpone", o)
}

// oneOf makes up an operation of one kind.
func (w *world) oneOf(tb testing.TB, kind string, o op) (op, bool) {
	tb.Helper()
	o.kind, o.job = kind, pick(w, jobNames)
	if len(w.view.names) > 0 && w.chance(95) {
		o.job = pick(w, w.view.names)
	}
	switch kind {
	case "trigger":
		return w.trigger(tb, o), true
	case "define":
		o = w.define(o)
		return o, len(o.defs) > 0
	case "gate":
		return w.setGate(o), true
	case "unfollow":
		o.upstream = pick(w, jobNames)
		w.promotes(&o)
	case "promote":
		return w.raise(o), true
	case "unclaim":
		o = w.unclaim(o)
		return o, len(o.returns) > 0
	case "cancel":
		return w.cancel(o)
	case "rerun":
		return w.rerun(tb, o)
	case "pause":
		o.pause = Pause{Author: pick(w, []string{"", "ann", "b|b"}), Reason: pick(w, []string{"", "why|\nnot"})}
		if w.chance(60) {
			o.pause.Until = w.ms() + w.rng.Int64N(30_000) - 5000
		}
	case "rewind":
		return w.setBack(o)
	case "remove":
		return o, !slices.ContainsFunc(w.planted, func(p plant) bool { return p.job == o.job })
	case "follow":
		return w.follow(o), true
	case "relay":
		if w.favour == kind && w.chance(30) {
			return w.follow(o), true
		}
		return w.relay(tb, o)
	case "postpone":
		return w.postpone(o)
	}
	return o, true
}

func (w *world) cancel(o op) (op, bool) {
	o.kind, o.pause = "cancel", Pause{Author: pick(w, []string{"", "ann", "b|b"}), Reason: pick(w, []string{"", "why|\nnot"})}
	list := pick(w, [][]Lease{w.view.leased, w.view.leased, w.view.pending, w.view.pending, w.ended})
	if len(list) == 0 {
		return o, false
	}
	l := pick(w, list)
	if o.run = l.Run; w.chance(90) {
		o.job = l.Job
	}
	return o, true
}

func (w *world) rerun(tb testing.TB, o op) (op, bool) {
	tb.Helper()
	o.kind = "rerun"
	var runs []string
	for _, r := range w.rows(tb, o.job) {
		if !r.Ranged {
			runs = append(runs, r.Run)
		}
	}
	for _, l := range slices.Concat(w.view.leased, w.view.pending) {
		if l.Job == o.job {
			runs = append(runs, l.Run)
		}
	}
	if len(runs) == 0 {
		return o, false
	}
	if o.run = pick(w, runs); w.chance(8) {
		o.run = w.id("nobody")
	}
	return o, true
}

func (w *world) setBack(o op) (op, bool) {
	idle := keepIf(w.view.names, func(name string) bool {
		return !follows(name) && !slices.ContainsFunc(w.view.leased, func(l Lease) bool { return l.Job == name })
	})
	if len(idle) > 0 && w.chance(85) {
		o.job = pick(w, idle)
	}
	s := w.view.jobs[o.job]
	o.kind, o.rewind = "rewind", Rewind{Job: o.job, Digest: s.Digest, From: s.Cursor}
	low, high := s.Base, s.Cursor
	if high == 0 {
		high = s.Last + 1
	}
	if r := rhythms[s.Digest]; r.every > 0 && high > low {
		o.rewind.To = r.next(high - 1 - w.rng.Int64N(min(high-low, 40*r.every)+1))
	}
	switch w.rng.IntN(20) {
	case 0:
		o.rewind.From -= 1000
	case 1:
		o.rewind.Digest = pick(w, digests)
	case 2:
		o.rewind.To = s.Base - 1000
	case 3:
		o.rewind.To = s.Cursor
	}
	return o, o.rewind.To > 0
}

func (w *world) follow(o op) op {
	o.kind, o.upstream = "follow", pick(w, jobNames)
	if followers := keepIf(w.view.names, follows); len(followers) > 0 && w.chance(80) {
		o.job = pick(w, followers)
	}
	if s, known := w.view.jobs[o.job]; known && w.chance(80) && rhythms[s.Digest].after != "" {
		o.upstream = rhythms[s.Digest].after
	} else if w.chance(40) {
		o.kind = "unfollow"
	}
	w.promotes(&o)
	return o
}

// relay tells a follower of an event that stands in an outbox, or stood there until a moment ago.
func (w *world) relay(tb testing.TB, o op) (op, bool) {
	tb.Helper()
	found, err := w.rig.led.NewGaze().Look(tb.Context(), w.ms(), 0)
	if err != nil {
		tb.Fatal(err)
	}
	if o.kind = "relay"; len(found.Events) > 0 && w.chance(90) {
		o.event = pick(w, found.Events)
		o.event.Unheld = w.chance(10)
		if len(o.event.Followers) == 0 || w.chance(30) {
			o.kind = "relayed"
		} else if w.chance(95) {
			o.job = pick(w, o.event.Followers)
		}
		w.events = remember(w.events, o.event, 6)
		return o, true
	}
	w.events = keepIf(w.events, func(e Event) bool { return w.ms()-e.At < 60_000 && w.ms() >= e.At })
	if len(w.events) == 0 {
		return o, false
	}
	o.event = pick(w, w.events)
	return o, true
}

func (w *world) postpone(o op) (op, bool) {
	s := w.view.jobs[o.job]
	o.kind, o.late, o.until = "postpone", Late{Job: o.job, Cursor: s.Cursor}, w.ms()+w.rng.Int64N(60_000)
	if w.chance(20) {
		o.late.Cursor += 500
	}
	return o, true
}
