package agenda

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A node with one slot, on which ticks, shards and pending runs wait.
func TestOrderOfWhatWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, "a", "b", "c", "d", "wide")
		w.own(w.jobs[4], 2, 3)
		for i, j := range w.jobs {
			at := time.Now().Add(time.Duration(i) * time.Millisecond)
			if at = at.Add(-time.Second); j.Name == "wide" {
				at = at.Add(time.Hour)
			}
			Registered{Jobs: []*work.Job{j}, Cursors: []int64{at.UnixMilli()}}.apply(w.Agenda)
		}
		crashed := waits("a/crashed")
		crashed.ReservesJob = true
		w.found(waits("a/waits"), waits("b/waits"), crashed, part("wide/0", 0), part("wide/1", 1), part("wide/2", 2), part("wide/3", 3))
		want := []string{
			"a/crashed", "a/waits", "b/waits", // runs that held their job first
			"wide/2", "a", "wide/3", "b", "wide/0", "c", "wide/1", "d", // by turns, the node's own shards first
		}
		if got := w.asked(claim.Answer{Verdict: claim.Granted}); !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
		if len(w.waiting) != 0 {
			t.Errorf("%d are remembered that were answered", len(w.waiting))
		}
	})
}

// A pending run that is answered held waits as long as it is found: for the end of its job's run,
// or, by itself, of a pause.
func TestHeldRunsAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, "a")
		step := func(what string, a claim.Answer, want ...string) {
			t.Helper()
			if got := w.asked(a); !slices.Equal(got, want) {
				t.Errorf("%s: asked for %q, want %q", what, got, want)
			}
		}
		Registered{Jobs: w.jobs, Cursors: []int64{time.Now().Add(time.Hour).UnixMilli()}}.apply(w.Agenda)
		w.found(waits("a/1"), waits("a/2"))
		step("another holds the job", claim.Answer{Verdict: claim.JobBusy, Detail: "a/2"}, "a/1")
		step("no sooner", claim.Answer{})
		w.Slots.take()
		Settled{Reports: []settle.Report{{Job: "a"}}, Slots: 1}.apply(w.Agenda)
		step("the holder first", claim.Answer{Verdict: claim.JobBusy, Detail: claim.HeldByPause}, "a/2", "a/1")
		time.Sleep(heldPause - time.Second)
		w.found(waits("a/1"), waits("a/2"), waits("a/3"))
		step("the pause holds those", claim.Answer{Verdict: claim.Stale}, "a/3")
		w.found(waits("a/2"))
		time.Sleep(time.Second + 2*time.Millisecond)
		step("one was found no more", claim.Answer{Verdict: claim.Granted}, "a/2")
	})
}

// However many slots are free, only one of a job's ticks and pending runs is claimed at a time.
func TestOneOfAJobAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(4, "a", "b")
		Registered{Jobs: w.jobs, Cursors: []int64{time.Now().UnixMilli(), time.Now().UnixMilli()}}.apply(w.Agenda)
		w.found(waits("a/1"), waits("a/2"))
		w.fire()
		b := <-w.claims
		if len(b.Claims) != 2 || b.Claims[0].Run != "a/1" || b.Claims[1].Job != "b" {
			t.Errorf("asked for %+v, want one of each job", b.Claims)
		}
	})
}

// world is an agenda of jobs that it goes first for.
type world struct {
	*Agenda
	jobs   []*work.Job
	claims chan *work.Batch
}

func newWorld(size int, names ...string) *world {
	time.Sleep(time.Minute) // a bubble begins at a full hour, when a tick is due
	w := &world{claims: make(chan *work.Batch, 1)}
	for i, name := range names {
		schedule, _ := cron.Parse("@every 1h", "")
		w.jobs = append(w.jobs, &work.Job{Job: jobs.Job{Name: name}, Schedule: schedule, Index: i})
	}
	slots := NewSlots(size)
	w.Agenda = New(Config{
		Jobs: work.NewJobs(w.jobs, ""), Clock: idle{}, Slots: slots, Inbox: NewInbox(slots), Lanes: idle{claims: w.claims}, Order: idle{}, Listener: idle{},
		NewID: func() string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	w.own(nil)
	return w
}

// own makes the node go first for all jobs, and for some shards of one.
func (w *world) own(wide *work.Job, shards ...int) {
	all := Owned{Jobs: make(map[*work.Job]bool), Shards: map[*work.Job][]int{wide: shards}}
	for _, j := range w.jobs {
		all.Jobs[j] = true
	}
	all.apply(w.Agenda)
}

func (w *world) found(pending ...ledger.Run) {
	Found{ScanResult: query.ScanResult{Pending: pending}, Parts: []int{0}}.apply(w.Agenda)
}

// asked gives all claims the same answer, and returns their runs. No run has the slot for long.
func (w *world) asked(a claim.Answer) (runs []string) {
	for w.fire(); len(w.claims) > 0 && len(runs) < 100; w.fire() {
		b := <-w.claims
		runs = append(runs, b.Claims[0].Run)
		if !b.Claims[0].Pending {
			runs[len(runs)-1] = b.Claims[0].Job
		}
		b.Answers, b.Started = []claim.Answer{a}, []bool{false}
		w.takeAnswers(b)
	}
	return runs
}

// waits is a pending run JOB/RUN, and part a shard of an open tick.
func waits(run string) ledger.Run {
	job, _, _ := strings.Cut(run, "/")
	return ledger.Run{Job: job, ID: run, Granted: time.Now().UnixMilli()}
}

func part(run string, n int) ledger.Run {
	p := waits(run)
	p.TickID, p.Shard = "open", n
	return p
}

// idle is a world without obstacles and without listeners.
type idle struct {
	Listener
	claims chan *work.Batch
}

func (i idle) Claim(b *work.Batch)                          { i.claims <- b }
func (idle) Sweep(int)                                      {}
func (idle) Now() time.Time                                 { return time.Now() }
func (idle) Past() time.Time                                { return time.Now() }
func (idle) Usable() error                                  { return nil }
func (idle) Holding() error                                 { return nil }
func (idle) Blocked(int) bool                               { return false }
func (idle) Tick(*work.Job, bool, time.Duration) bool       { return true }
func (idle) Shard(*work.Job, int, bool, time.Duration) bool { return true }
func (idle) Due(string, int64)                              {}
