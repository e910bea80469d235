package schedtest

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// judge compares the jobs' writes with the schedules and the books of the new side.
func (m *moving) judge() {
	end := time.Now()
	c := audit.Case{Books: make(map[string]query.JobSnapshot), Disturbed: m.disturbed, Read: end.Add(m.offset), Ended: end.Add(m.offset), Settle: 12 * time.Second}
	// No start is late between the first seal and the opening, and until all nodes have followed.
	c.Disturbed = append(c.Disturbed, audit.Disturbance{Span: audit.Span{From: m.shut, Until: m.opened}, What: "drain, and a move"})
	c.Disturbed = append(c.Disturbed, audit.Disturbance{Span: audit.Span{From: end.Add(-2 * time.Second), Until: end.Add(time.Minute)}, What: "drain at the end"})
	for _, w := range m.writes {
		if !m.sealed.IsZero() && !w.At.Before(m.sealed) { // by the clock of the new side
			w.At = w.At.Add(m.offset)
		}
		c.Writes = append(c.Writes, w)
	}
	m.readBooks(c.Books)
	for _, j := range m.list() {
		def := j.Definition()
		schedule, err := def.ParsedSchedule()
		if err != nil {
			m.t.Fatal(err)
		}
		var cancelled []audit.Cancel
		if m.cancels {
			cancelled = []audit.Cancel{{Request: audit.Request{At: m.shut}}}
		}
		c.Jobs = append(c.Jobs, audit.Job{Name: j.Name, StartsOnly: true, Cancelled: cancelled, Versions: []audit.Version{{
			Schedule: schedule, Definition: def,
			Certain: audit.Span{From: m.begun.Add(2 * time.Second), Until: end.Add(-3 * time.Second)}, Possible: audit.Span{From: m.begun, Until: end.Add(time.Minute)},
		}}})
		if latest := m.latest(j.Name); m.opened.After(m.shut) && latest.Before(m.opened.Add(10*time.Second)) {
			m.t.Errorf("%s: the last run was %s after the new side was open", j.Name, latest.Sub(m.opened))
		}
	}
	m.report = audit.Check(c)
}

func (m *moving) latest(job string) (at time.Time) {
	for _, w := range slices.Backward(m.writes) {
		if w.Job == job {
			return w.At
		}
	}
	return at
}

// readBooks reads the new side's records.
func (m *moving) readBooks(books map[string]query.JobSnapshot) {
	client := m.to.Client()
	defer client.Close()
	l, err := ledger.OpenExisting(context.Background(), client, ledger.Config{Namespace: "escapement"})
	if err == nil {
		var unread query.Unread
		if unread, err = query.EachJob(context.Background(), l, "", func(b query.JobSnapshot) { books[b.Entry.Job] = b }); len(unread.UnknownFormat) > 0 {
			m.t.Errorf("left alone: %v", unread.UnknownFormat)
		}
	}
	if err != nil {
		m.t.Error(err)
	}
}
