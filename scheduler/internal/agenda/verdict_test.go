package agenda

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A claim that stood behind others until it was too old is asked for anew at once; one that Redis refused, a second later.
func TestClaimThatWasNotSentIsAskedForAnew(t *testing.T) {
	for err, want := range map[error]time.Duration{work.ErrNotSent: 0, errors.New("refused"): time.Second} {
		synctest.Test(t, func(t *testing.T) {
			schedule, _ := jobs.ParseSchedule("@every 1m", "")
			j := &work.Job{Job: jobs.Job{Name: "job"}, Schedule: schedule}
			slots, lanes := NewSlots(1), line{claims: make(chan *work.Batch, 1)}
			e := New(Config{
				Jobs: work.NewJobs([]*work.Job{j}), Clock: idle{}, Slots: slots, Inbox: NewInbox(slots), Lanes: lanes, Listener: idle{},
				NewID: func() string { return "run" }, Log: slog.New(slog.DiscardHandler),
			})
			Owned{Jobs: map[*work.Job]bool{j: true}}.take(e)
			Registered{Jobs: []*work.Job{j}, Cursors: []int64{time.Now().Add(-time.Minute).UnixMilli()}}.take(e)
			e.fire()
			b := <-lanes.claims
			b.Err = err
			e.hear(b)
			if got := max(0, time.Until(time.UnixMilli(e.heap.first().at))); got != want {
				t.Errorf("%v: asked for anew in %s, want %s", err, got, want)
			}
		})
	}
}

// line is lanes in which nothing is in the way.
type line struct{ claims chan *work.Batch }

func (l line) Claim(b *work.Batch) { l.claims <- b }
func (line) Sweep(int)             {}
func (line) Holding() error        { return nil }
func (line) Shut(int) bool         { return false }

// idle is a world in which nothing is in the way, and nobody listens.
type idle struct{ Listener }

func (idle) Now() time.Time    { return time.Now() }
func (idle) Past() time.Time   { return time.Now() }
func (idle) Usable() error     { return nil }
func (idle) Due(string, int64) {}
