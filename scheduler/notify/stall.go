package notify

import (
	"context"
	"maps"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// stall is a run in flight that has stalled.
type stall struct {
	roster.Stall
	node string
}

// readStalls reads from the nodes' heartbeats which runs in flight have stalled.
func (w *watch) readStalls(ctx context.Context) error {
	members, err := w.roster.Members(ctx)
	if err != nil {
		return err
	}
	w.stalls = make(map[string][]stall)
	for _, m := range members {
		for _, s := range m.Stalled {
			if m.State != roster.StateGone {
				w.stalls[s.Job] = append(w.stalls[s.Job], stall{s, m.Name})
			}
		}
	}
	return nil
}

// stalled derives events of attempts that made no progress, each once: of those in flight, and of
// attempts that were cancelled for it. The problem is over when a run succeeds after that. A
// heartbeat may still name a run that has ended: the run's row counts.
func (f facts) stalled(n *note, emit func(Event)) {
	before, last := f.note.lastStalled(), int64(0)
	notified := maps.Clone(n.Stalled)
	note := func(e Event) {
		if notified[e.Run] != 0 {
			return
		}
		if notified == nil {
			notified = make(map[string]int64)
		}
		notified[e.Run] = f.now
		e.Kind, e.Count = Stalled, 1
		emit(e)
	}
	ended := make(map[string]*ledger.Row)
	for i := range f.rows {
		r := &f.rows[i]
		ended[r.Run] = r
		if r.Reason != ledger.ReasonStalled {
			continue
		}
		last = max(last, r.At)
		if f.looked != 0 && r.At >= f.looked-margin { // the first look ever notifies only the current state
			note(Event{Run: r.Run, Node: r.NodeName, Tick: stampOf(r.Tick), Outcome: r.Outcome.String(), Error: "its run was cancelled for it"})
		}
	}
	flying := make(map[string]bool, len(f.stalls))
	for _, s := range f.stalls {
		r := ended[s.Run]
		if r == nil {
			flying[s.Run] = true
		}
		if r == nil || r.Outcome != jobs.OutcomeSucceeded {
			note(Event{Run: s.Run, Node: s.node, Tick: stampOf(s.Tick), Error: "no progress for " + spell(s.After)})
		}
	}
	over := func(r ledger.Row) bool { // a notified run may have succeeded before it was notified
		return isSuccess(r) && r.At > last && (r.At > before || before != 0 && f.note.Stalled[r.Run] == before)
	}
	if n.Told[Stalled] != 0 && len(flying) == 0 && slices.ContainsFunc(f.rows, over) {
		emit(Event{Kind: Stalled, Recovered: true, Error: "a run has succeeded"})
	}
	for run, at := range notified {
		open := n.Told[Stalled] != 0 && at == before         // a success must be later
		if !flying[run] && !open && at < f.looked-keepWell { // its row is too old by now to be looked at
			delete(notified, run)
		}
	}
	n.Stalled = notified
}

// isSuccess reports whether a run or a whole tick succeeded.
func isSuccess(r ledger.Row) bool {
	return r.Outcome == jobs.OutcomeSucceeded && r.TickID == "" && (r.IsTick || r.Shards <= 1)
}

// successOf is when a run or a whole tick succeeded last, ms; 0 for never.
func successOf(rows []ledger.Row) (at int64) {
	for _, r := range rows {
		if isSuccess(r) {
			at = max(at, r.At)
		}
	}
	return at
}
