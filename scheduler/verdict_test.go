package scheduler

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A grant that an earlier request got, and whose answer never came, is older than the batch that hears of it: the
// deadline must not count from that batch (P4).
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
		b := &batch{asked: asked, sent: asked.Add(c.sent)}
		if got := since(b, ledger.Claim{TTL: ttl}, ledger.Answer{Left: c.left}); !got.Equal(asked.Add(c.want)) {
			t.Errorf("%s: counts from %s after the batch was first sent; want %s", name, got.Sub(asked), c.want)
		}
	}
}

// A claim that stood behind others until it was too old is asked for anew at once; one that Redis refused, a second later.
func TestClaimThatWasNotSentIsAskedForAnew(t *testing.T) {
	for err, want := range map[error]time.Duration{errNotSent: 0, errors.New("refused"): time.Second} {
		synctest.Test(t, func(t *testing.T) {
			schedule, _ := jobs.ParseSchedule("@every 1m", "")
			j := &job{Job: jobs.Job{Name: "job"}, schedule: schedule, place: -1, owned: true}
			c := newClock(time.Now, time.Minute)
			c.add(time.Now(), time.Now(), time.Now(), "server")
			e := newEngine(c, newSlots(1), []*job{j}, func() string { return "run" }, slog.New(slog.DiscardHandler))
			e.registered(j, time.Now().Add(-time.Minute).UnixMilli())
			e.fire()
			b := <-e.batches
			b.err = err
			e.hear(b)
			if got := max(0, time.Until(time.UnixMilli(e.agenda.first().at))); got != want {
				t.Errorf("%v: asked for anew in %s, want %s", err, got, want)
			}
		})
	}
}
