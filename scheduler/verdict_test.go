package scheduler

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A grant that an earlier request got, and whose answer never came, is older than the batch that hears of it: the
// deadline must not count from that batch.
func TestSinceTellsOfAnEarlierGrant(t *testing.T) {
	const ttl = 10 * time.Second
	asked := time.Now()
	for name, c := range map[string]struct {
		sent, left, want time.Duration // sent and want: after asked
	}{
		"granted to this request":                   {0, ttl, 0},
		"the answer came to a later copy":           {3 * time.Second, 8 * time.Second, 0},
		"granted to a request 4 s before the batch": {0, 6 * time.Second, -4 * time.Second},
		"lapsed": {time.Second, 0, -9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := &batch{asked: asked, sent: asked.Add(c.sent)}
			got := since(b, ledger.Claim{TTL: ttl}, ledger.Answer{Left: c.left})
			if want := asked.Add(c.want); !got.Equal(want) {
				t.Errorf("counts from %s after the batch was first sent; want %s", got.Sub(asked), c.want)
			}
		})
	}
}

// Ticks of the old schedule up to now are counted, and the first after them is named, so that the ledger
// refuses when it has come due meanwhile.
func TestWishNamesTheUpcomingTick(t *testing.T) {
	parse := func(text string) *jobs.Schedule {
		s, err := jobs.ParseSchedule(text, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ms := func(d time.Duration) int64 { return noon.Add(d).UnixMilli() }
	for name, c := range map[string]struct {
		old      string
		cursor   int64
		count    int64
		upcoming int64
	}{
		"some are overdue":        {"*/10 * * * * *", ms(-20 * time.Second), 3, ms(10 * time.Second)},
		"none is due":             {"*/10 * * * * *", ms(10 * time.Second), 0, ms(10 * time.Second)},
		"the cursor ran ahead":    {"*/10 * * * * *", ms(time.Hour), 0, ms(time.Hour)},
		"the last one is overdue": {"0 0 12 21 11 *", ms(0), 1, noon.AddDate(1, 0, 0).UnixMilli()},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wish{job: &job{schedule: parse("@every 1m")}, old: parse(c.old), def: ledger.Definition{WasCursor: c.cursor}}
			if got := w.at(noon, 0); got.Count != c.count || got.Upcoming != c.upcoming {
				t.Errorf("%d ticks counted and %s upcoming; want %d and %s", got.Count, time.UnixMilli(got.Upcoming).UTC(), c.count, time.UnixMilli(c.upcoming).UTC())
			}
		})
	}
}

// What a node believes of a job is not at fault when a claim that was not answered is asked about at last.
// Nor do refusals count that a grant came after.
func TestReplanAfterAnOutage(t *testing.T) {
	e := readyEngine(t, 1, 1)
	j := e.jobs[0]
	j.owned, j.outside, j.cursor = true, false, time.Now().UnixMilli()
	for _, asked := range []bool{true, true, false} {
		e.replan(j, ledger.Answer{Verdict: ledger.Moved, Cursor: j.cursor}, asked)
	}
	if j.refused != 1 {
		t.Errorf("%d refusals were counted; want the one of a claim", j.refused)
	}
	e.granted = func(grant) {}
	e.grant(j, ledger.Claim{}, ledger.Answer{Verdict: ledger.Granted}, &batch{})
	if j.refused != 0 {
		t.Errorf("%d refusals are counted after a grant: those of faults years apart would add up", j.refused)
	}
}

// What waits for a held job is asked for rarely when it has waited long, and at once when the run that held it ends here.
func TestFreedIsAskedForAtOnce(t *testing.T) {
	e := readyEngine(t, 1, 1)
	j := e.jobs[0]
	now := e.clock.now().UnixMilli()
	j.owned, j.outside, j.cursor, j.pendingSince = true, false, now, now-time.Hour.Milliseconds()
	e.held(j, ledger.Claim{Pending: true}, "holder")
	if wait := j.putOff - now; wait < heldPause.Milliseconds()-100 {
		t.Fatalf("asked for again in %d ms, after an hour", wait)
	}
	e.freed(j)
	if j.putOff != 0 {
		t.Error("the job is free, and what waited for it is not asked for")
	}
}
