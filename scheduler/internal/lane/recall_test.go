package lane

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A node that could not report all its runs at once reports its cursors again with them. The ticks that Redis has lost are recorded once.
func TestGapIsFilledOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f, l, client := fresh(t, func(*ledger.Sample) {})
	now, err := l.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f.l.Clock = NewClock(time.Now, time.Minute)
	f.l.Clock.add(time.Now(), time.Now(), now, "server")
	f.l.lanes.Clock, f.l.lanes.cursors.all = f.l.Clock, make(map[*work.Job]*knownCursor)
	f.l.SweepEvery = 250 * time.Millisecond

	own := jobs.Job{Name: "a", Schedule: "@every 1s"}
	schedule, err := own.ParsedSchedule()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(own.Definition())
	if err != nil {
		t.Fatal(err)
	}
	j := &work.Job{Job: own, Schedule: schedule, Digest: own.Definition().Digest()}
	cursor := now.Truncate(time.Second).Add(-9 * time.Second).UnixMilli()
	defined, err := l.Define(ctx, now.UnixMilli(), []ledger.Definition{{Job: "a", Digest: j.Digest, Text: text, Cursor: cursor}})
	if err != nil || defined[0].Word != "created" {
		t.Fatal(defined, err)
	}
	for _, key := range client.Keys(ctx, "*anew*").Val() {
		client.Del(ctx, key) // the job is known for long
	}
	f.l.Jobs = work.NewJobs([]*work.Job{j}, "v1")
	f.l.lanes.Registered(j, cursor+3000)
	e := f.epochs[0]
	id := e.ID()
	e.Join(id)
	e.Open()
	e.Answered(id, now.UnixMilli())
	e.Leave() // and the master comes back, a moment older
	e.Notice(id)
	for range 2 {
		if err := f.recall(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if !f.level(ctx) {
		t.Fatal("the gap is not filled")
	}
	rows, _, err := l.History(ctx, []string{"a"})
	if err != nil || len(rows["a"]) != 1 || rows["a"][0].Count != 3 {
		t.Errorf("%+v, %v; want one row of 3 ticks", rows, err)
	}
}
