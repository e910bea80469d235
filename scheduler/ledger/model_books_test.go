package ledger

import (
	"cmp"
	"math"
	"slices"

	"github.com/escapement/escapement/jobs"
)

// define registers a definition: a node's own, or as part of a promotion.
func (m *model) define(o op, d Definition) Defined {
	j := m.jobs[d.Job]
	switch g := m.gate(d.Job); {
	case o.kind == "switch" && o.epoch != g.epoch, o.kind == "define" && j == nil && d.Generation != g.generation:
		return Defined{Word: "standby", Text: []byte{}}
	case m.foreign["entry "+d.Job]:
		return Defined{Word: "foreign", Text: []byte{}}
	}
	var word string
	var former []string
	text := []byte{}
	switch {
	case j == nil:
		word = "created"
		j = &modelJob{text: d.Text, Entry: Entry{Job: d.Job, Cursor: d.Cursor, Digest: d.Digest, Revision: d.Revision, Counts: map[jobs.Outcome]int64{}}}
		m.jobs[d.Job], m.due[d.Job] = j, d.Cursor
	case j.Digest == d.Digest:
		word = "same"
		j.Revision, m.due[d.Job] = max(j.Revision, d.Revision), j.Cursor
	case d.Same && j.Digest == d.WasDigest:
		word = "replaced"
		m.write(j, modelRow{Row: Row{Job: j.Job, Ranged: true, Prev: j.Cursor, Next: j.Cursor, At: m.ms(), Tick: j.Cursor,
			Outcome: jobs.OutcomeSuperseded, Reason: ReasonReplacedDef, Note: flatten.Replace(d.Old)}, step: len(j.steps)})
		j.move(j.Cursor)
		j.replace(d.Digest)
		j.Digest, j.Revision, j.text, m.due[d.Job] = d.Digest, d.Revision, d.Text, j.Cursor
	case j.Digest != d.WasDigest || j.Cursor != d.WasCursor || d.Upcoming != 0 && d.Upcoming <= m.ms(),
		d.Cursor != 0 && (d.Cursor <= m.ms() || d.Cursor <= j.Last):
		word, text, former = "differs", j.text, j.former
	default:
		word = "replaced"
		m.redefine(j, d)
	}
	return Defined{Word: word, Cursor: j.Cursor, Digest: j.Digest, Revision: j.Revision, Text: text, Last: j.Last, Former: slices.Clone(former)}
}

// replace remembers the digest that another one takes the place of.
func (j *modelJob) replace(digest string) {
	list := []string{j.Digest}
	for _, d := range j.former {
		if d != j.Digest && d != digest && len(list) < 8 {
			list = append(list, d)
		}
	}
	j.former = list
}

func (m *model) redefine(j *modelJob, d Definition) {
	was := j.Cursor
	row := Row{Job: j.Job, Ranged: true, Prev: was, Next: d.Cursor, At: m.ms(), Tick: was, Outcome: jobs.OutcomeSuperseded,
		Reason: ReasonReplacedDef, Note: flatten.Replace(d.Old)}
	if d.Count > 0 {
		row.Until, row.Count = d.Until, d.Count
		j.Last = d.Until
	}
	m.write(j, modelRow{Row: row, step: len(j.steps)})
	j.move(d.Cursor)
	if d.Count > 0 {
		j.count(jobs.OutcomeSuperseded, d.Count)
		m.tell(j, Event{Prev: was, Next: d.Cursor, Tick: was, Until: d.Until, Count: d.Count, Outcome: jobs.OutcomeSuperseded})
	}
	j.replace(d.Digest)
	j.Digest, j.Revision, j.text, m.due[j.Job] = d.Digest, d.Revision, d.Text, d.Cursor
	j.stretch(m.ms())
}

// passed records ticks that did not run, in the last row if that says the same of those before, and
// tells those who follow.
func (m *model) passed(j *modelJob, step int, row Row) {
	j.count(row.Outcome, row.Count)
	m.tell(j, Event{Prev: row.Prev, Next: row.Next, Tick: row.Tick, Until: row.Until, Count: row.Count, Outcome: row.Outcome})
	if n := len(j.rows); n > 0 {
		tail := &j.rows[n-1]
		if tail.Ranged && tail.Next == row.Tick && (tail.Prev == 0) == (row.Prev == 0) && tail.Outcome == row.Outcome && tail.Reason == row.Reason && tail.Note == row.Note {
			tail.Next, tail.Until, tail.At, tail.step = row.Next, row.Until, m.ms(), step
			tail.Count += row.Count
			return
		}
	}
	row.Job, row.Ranged, row.At = j.Job, true, m.ms()
	m.write(j, modelRow{Row: row, step: step})
}

// write appends a row and trims: at every 16th, up to 32 also when the first is too old, at most 64, never the newest.
func (m *model) write(j *modelJob, row modelRow) {
	j.rows = append(j.rows, row)
	n := len(j.rows)
	if first := j.rows[0]; n%16 != 0 && (n > 32 || first.foreign || first.At >= m.ms()-m.keepFor) {
		return
	}
	for dropped := 0; dropped < 64 && len(j.rows) > 1; dropped++ {
		old := j.rows[0]
		at := old.At
		if old.foreign {
			at = math.MaxInt64 // its age is not known
		}
		if len(j.rows) <= m.keep && at >= m.ms()-m.keepFor {
			return
		}
		j.first = max(j.first, old.step+1)
		j.rows = j.rows[1:]
		m.drop(old)
		if !old.foreign && !old.Ranged && old.Prev == 0 && old.Request == "" && j.Cursor == 0 {
			j.Again, j.AgainAttempt = max(j.Again, old.Tick+1), max(j.AgainAttempt, old.Attempt+1)
		}
	}
}

// drop drops what is kept beside a row.
func (m *model) drop(row modelRow) {
	delete(m.kept, row.Run)
	delete(m.kept, "p:"+row.Run)
}

// base is where the chain begins: before the first step that the books still show.
func (j *modelJob) base() int64 {
	if j.first < len(j.steps) {
		return j.steps[j.first]
	}
	return j.Cursor
}

// reaches is how far the cursor may be set back: to the base, or where that is without a schedule to the first one behind it.
func (j *modelJob) reaches() int64 {
	for _, at := range j.steps[min(j.first, len(j.steps)):] {
		if at != 0 {
			return at
		}
	}
	return j.Cursor
}

// stored is what Jobs must read, by name; a foreign entry has nothing but its name.
func (m *model) stored() []Stored {
	var all []Stored
	for _, j := range m.jobs {
		e := j.Entry
		e.Base = j.base()
		if m.foreign["entry "+j.Job] {
			all = append(all, Stored{Entry: Entry{Job: j.Job}})
			continue
		}
		all = append(all, Stored{Entry: e, Definition: j.text})
	}
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Compare(a.Job, b.Job) })
	return all
}

// open is what Open must read, by run.
func (m *model) open() []Lease {
	var all []Lease
	for what, set := range map[string]map[string]*modelRun{"run ": m.runs, "pending ": m.waiting} {
		for id, r := range set {
			if !m.foreign[what+id] {
				all = append(all, r.Lease)
			}
		}
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Compare(a.Run, b.Run) })
	return all
}

// history is what History must read of one job.
func (m *model) history(job string) (rows []Row, foreign int) {
	if j := m.jobs[job]; j != nil {
		for _, row := range j.rows {
			if row.foreign {
				foreign++
				continue
			}
			rows = append(rows, row.Row)
		}
	}
	return rows, foreign
}

// why is the reason of a run's end that somebody wished for.
func (c Cancel) why() string {
	switch {
	case c.Author == "":
		return ReasonReplaced
	case c.Reason == "":
		return "cancelled by " + c.Author
	}
	return "cancelled by " + c.Author + ": " + c.Reason
}
