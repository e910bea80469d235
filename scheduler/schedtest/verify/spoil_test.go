package verify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// spoiler changes a case; it fails the test when what it is to change is not there.
type spoiler struct {
	t *testing.T
	c *Case
}

func (s spoiler) line(run string, phase Phase) *Write {
	s.t.Helper()
	i := slices.IndexFunc(s.c.Writes, func(w Write) bool { return w.Run == run && w.Phase == phase })
	if i < 0 {
		s.t.Fatalf("no line: %s of %s", phase, run)
	}
	return &s.c.Writes[i]
}

func (s spoiler) row(job, run string) *ledger.Row {
	s.t.Helper()
	i := slices.IndexFunc(s.c.Books.Rows[job], func(r ledger.Row) bool { return r.Run == run })
	if i < 0 {
		s.t.Fatalf("no row of %s", run)
	}
	return &s.c.Books.Rows[job][i]
}

func (s spoiler) unwrite(run string, phase Phase) {
	s.t.Helper()
	s.line(run, phase)
	s.c.Writes = slices.DeleteFunc(s.c.Writes, func(w Write) bool { return w.Run == run && w.Phase == phase })
}

func (s spoiler) unrecord(job, run string) {
	s.t.Helper()
	s.row(job, run)
	s.c.Books.Rows[job] = slices.DeleteFunc(s.c.Books.Rows[job], func(r ledger.Row) bool { return r.Run == run })
}

// erase takes a run out of sink and books.
func (s spoiler) erase(job, run string) {
	s.t.Helper()
	s.unwrite(run, Start)
	s.unwrite(run, End)
	s.unrecord(job, run)
}

// shift moves both lines of a run in time, and its row, but not in the order of writing.
func (s spoiler) shift(job, run string, d time.Duration) {
	s.t.Helper()
	for _, p := range []Phase{Start, End} {
		w := s.line(run, p)
		w.At = w.At.Add(d)
	}
	r := s.row(job, run)
	r.At, r.Started = r.At+d.Milliseconds(), r.Started+d.Milliseconds()
}

// again copies a run under another id and a token between its own and the next one's, with its row.
func (s spoiler) again(job, run, id string, after time.Duration) {
	s.t.Helper()
	row := *s.row(job, run)
	i := slices.IndexFunc(s.c.Books.Rows[job], func(r ledger.Row) bool { return r.Run == run })
	row.Run, row.Token = id, row.Token+1
	s.c.Books.Rows[job] = slices.Insert(s.c.Books.Rows[job], i+1, row)
	at := slices.IndexFunc(s.c.Writes, func(w Write) bool { return w.Run == run && w.Phase == End })
	for k, p := range []Phase{Start, End} {
		w := *s.line(run, p)
		w.Run, w.Token, w.At = id, w.Token+1, w.At.Add(after)
		s.c.Writes = slices.Insert(s.c.Writes, at+1+k, w)
	}
	s.renumber()
}

func (s spoiler) renumber() {
	for i := range s.c.Writes {
		s.c.Writes[i].No = i + 1
	}
}

// recordRange puts a row of ticks that did not run into a job's history, before the row of a run.
func (s spoiler) recordRange(job, before string, o jobs.Outcome, reason string, from, to time.Time, count int64, at time.Time) {
	s.t.Helper()
	s.row(job, before)
	i := slices.IndexFunc(s.c.Books.Rows[job], func(r ledger.Row) bool { return r.Run == before })
	s.c.Books.Rows[job] = slices.Insert(s.c.Books.Rows[job], i, ledger.Row{Job: job, Ranged: true, Outcome: o, Reason: reason,
		Tick: from.UnixMilli(), Until: to.UnixMilli(), Count: count, At: at.UnixMilli(), Prev: from.UnixMilli(), Next: to.UnixMilli() + 10_000})
}

// wrong lets something be wrong for a while; until 0, for good.
func (s spoiler) wrong(from, until time.Duration, loses bool, nodes ...string) {
	d := Disturbance{Span: Span{From: after(from)}, What: "a fault", Nodes: nodes, Loses: loses}
	if until > 0 {
		d.Until = after(until)
	}
	s.c.Disturbed = append(s.c.Disturbed, d)
}

// lasts makes a run end later.
func (s spoiler) lasts(job, run string, until time.Duration) {
	s.t.Helper()
	s.line(run, End).At = after(until)
	s.row(job, run).At = after(until).UnixMilli()
}

// skip lets a run not have been, as its tick was skipped.
func (s spoiler) skip(job, run, before string, tick time.Duration) {
	s.t.Helper()
	s.erase(job, run)
	s.recordRange(job, before, jobs.OutcomeSkipped, "overlap", after(tick), after(tick), 1, after(tick+20*ms))
}

// end makes a run's row end another way.
func (s spoiler) end(job, run string, o jobs.Outcome) {
	s.t.Helper()
	s.row(job, run).Outcome = o
}

func kindsOf(r Report) []Kind {
	var out []Kind
	for _, f := range r.Findings {
		out = append(out, f.Kind)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// show writes findings one a line.
func show(r Report) string {
	text := fmt.Sprintf("%d ticks %v, %d runs, %d stale, %d excused\n", r.Ticks, r.Verdicts, r.Runs, r.Stale, r.Excused)
	for i, f := range r.Findings {
		if i == 10 {
			return text + "..."
		}
		text += f.String() + "\n"
	}
	return text
}
