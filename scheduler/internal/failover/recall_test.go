package failover

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A node that could not report all its runs at once reports its cursors again with them. The ticks that Redis has lost are recorded once.
func TestGapIsFilledOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := newNode(t, same)
	now := n.Clock.Now()
	j := jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"})
	cursor := now.Truncate(time.Second).Add(-9 * time.Second).UnixMilli()
	n.define(t, j.Job, cursor)
	n.Jobs = work.NewJobs([]*work.Job{j}, "v1")
	n.Reporter.Cursors.Registered(j, cursor+3000, now.UnixMilli())
	e := n.epochs[0]
	id := e.ID()
	e.Open()
	e.Answered(id, now.UnixMilli())
	e.Leave() // and the master comes back, a moment older
	e.Notice(id)
	for range 2 {
		if err := n.recall(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if !n.fillGaps(ctx) {
		t.Fatal("the gap is not filled")
	}
	rows, _, err := query.History(ctx, n.led, []string{"a"})
	if err != nil || len(rows["a"]) != 1 || rows["a"][0].Count != 3 {
		t.Errorf("%+v, %v; want one row of 3 ticks", rows, err)
	}
}

// A job that was claimed anew before this node could report has a row of the ticks between the two cursors.
func TestRecallOfJobsThatAreAhead(t *testing.T) {
	t.Parallel()
	n := newNode(t, same)
	now := n.Clock.Now()
	j := jobOf(t, jobs.Job{Name: "a", Schedule: "@every 1s"})
	cursor := now.Truncate(time.Second).Add(-9 * time.Second).UnixMilli()
	n.Jobs = work.NewJobs([]*work.Job{j}, "v1")
	n.Reporter.Cursors.Registered(j, cursor, now.UnixMilli())
	e := n.epochs[0]
	id := e.ID()
	e.Open()
	e.Answered(id, now.UnixMilli())
	if err := n.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.led.Restore(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n.Notice(n.sample(t)); n.state() != Asserting {
		t.Fatal(n.state())
	}
	if err := n.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.define(t, j.Job, now.UnixMilli()) // created anew, at the cursor that was reported
	if got := n.cursor(t, "a"); got != cursor {
		t.Errorf("the job that Redis had lost begins at %d, want %d", got, cursor)
	}
}
