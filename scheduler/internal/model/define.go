package model

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
)

// Define creates a job, or replaces its definition, by compare-and-set on the digest and the
// cursor.
func (m *Ledger) Define(d define.Definition) define.Defined {
	j, word := m.jobs[d.Job], "replaced"
	switch {
	case j == nil:
		word = "created"
		j = &job{text: d.Text, Entry: ledger.Entry{Job: d.Job, Cursor: d.Cursor, Digest: d.Digest, Revision: d.Revision, Counts: map[jobs.Outcome]int64{}}}
		m.jobs[d.Job] = j
	case j.Digest == d.Digest:
		word, j.Revision = "same", max(j.Revision, d.Revision)
	case m.unfit(j, d):
		return define.Defined{Status: "differs", Cursor: j.Cursor, Digest: j.Digest, Revision: j.Revision, Text: j.text, Last: j.Last, Stored: m.defs[d.Digest]}
	default:
		m.replaceDefinition(j, d)
	}
	m.defs[d.Digest] = true
	return define.Defined{Status: word, Cursor: j.Cursor, Digest: j.Digest, Revision: j.Revision, Text: []byte{}, Last: j.Last}
}

// unfit reports whether another definition or cursor than the caller saw is stored, a tick came due
// that the caller did not count, or the new schedule would begin too early.
func (m *Ledger) unfit(j *job, d define.Definition) bool {
	switch {
	case d.WasDigest != j.Digest && m.on(DigestInDefine):
		return true
	case d.Same:
		return false
	case d.WasCursor != j.Cursor && m.on(CursorInDefine),
		d.Upcoming != 0 && d.Upcoming <= m.ms() && m.on(AllDueInDefine),
		d.Cursor != 0 && d.Cursor <= m.ms() && m.on(AfterNowInDefine),
		d.Cursor != 0 && d.Cursor <= j.Last && m.on(AfterLastInDefine):
		return true
	}
	return false
}

// replaceDefinition records the ticks of the old schedule that will not run, and moves the cursor
// to the new one's first tick. Where the schedule is the same, the cursor stays.
func (m *Ledger) replaceDefinition(j *job, d define.Definition) {
	if d.Same {
		d.WasCursor, d.Cursor, d.Count = j.Cursor, j.Cursor, 0
	}
	change := ledger.Row{
		Job: j.Job, Ranged: true, Prev: d.WasCursor, Next: d.Cursor, At: m.ms(), Tick: d.WasCursor, Outcome: jobs.OutcomeSuperseded,
		Reason: ledger.ReasonReplacedDef, Note: d.Old,
	}
	if d.Count > 0 {
		change.Until, change.Count, j.Last = d.Until, d.Count, d.Until
		j.Counts[jobs.OutcomeSuperseded] += d.Count
	}
	if tail := m.changeBefore(j, d); tail != nil {
		tail.Next, tail.At, tail.step = d.Cursor, m.ms(), len(j.steps)
	} else {
		m.write(j, row{change, len(j.steps)})
	}
	j.move(d.Cursor)
	j.Digest, j.Revision, j.text = d.Digest, d.Revision, d.Text
}

// changeBefore is the row of the last change of a definition when no tick came due since: that row
// then leads to the new definition.
func (m *Ledger) changeBefore(j *job, d define.Definition) *row {
	if len(j.rows) == 0 || d.Count > 0 || d.Cursor == 0 || j.Cursor == 0 {
		return nil
	}
	tail := &j.rows[len(j.rows)-1]
	stays := d.Same && tail.Prev == tail.Next && tail.Note == d.Old
	if tail.Reason != ledger.ReasonReplacedDef || tail.Count > 0 || tail.Prev == 0 || tail.Next != j.Cursor || !stays && tail.Prev <= m.ms() {
		return nil
	}
	return tail
}
