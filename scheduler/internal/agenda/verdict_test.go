package agenda

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/work"
)

// A claim that was queued until it was too old is repeated at once; a claim that Redis refused, a
// second later.
func TestClaimThatWasNotSentIsAskedForAnew(t *testing.T) {
	for err, want := range map[error]time.Duration{work.ErrNotSent: 0, errors.New("refused"): time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1, "job")
			Registered{Jobs: w.jobs, Cursors: []int64{time.Now().Add(-time.Minute).UnixMilli()}}.apply(w.Agenda)
			w.fire()
			b := <-w.claims
			b.Err = err
			w.takeAnswers(b)
			if got := max(0, time.Until(time.UnixMilli(w.queue.heaps[tick][0].at))); got != want {
				t.Errorf("%v: asked for anew in %s, want %s", err, got, want)
			}
		})
	}
}
