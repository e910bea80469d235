package agenda

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// How early ticks are claimed follows from the time that the claims of one instant have taken. An
// earlier version did so only in a simulation, and never on a real clock, where two readings
// differ.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lead
		if got := l.time(); got != aheadMin {
			t.Errorf("at first it is %s, want %s", got, aheadMin)
		}
		burst := func(spent time.Duration, b *work.Batch) time.Duration {
			l.sent(0)
			b.FirstSent = time.Now()
			time.Sleep(time.Microsecond)
			b.LastSent = time.Now()
			l.sent(1)
			time.Sleep(spent - time.Microsecond)
			l.answered(1, b)
			l.answered(0, b)
			return l.time()
		}
		for _, c := range []struct {
			what  string
			spent time.Duration
			batch work.Batch
			want  time.Duration
		}{
			{"claims that took long", 200 * time.Millisecond, work.Batch{}, 300 * time.Millisecond},
			{"quicker ones", 20 * time.Millisecond, work.Batch{}, 270 * time.Millisecond},
			{"one asked twice", 5 * time.Second, work.Batch{Repeated: true}, 270 * time.Millisecond},
			{"one that was not answered", 5 * time.Second, work.Batch{Err: work.ErrNotSent}, 270 * time.Millisecond},
			{"claims that took too long", 5 * time.Second, work.Batch{}, claim.AheadMax},
		} {
			if got := burst(c.spent, &c.batch); got != c.want {
				t.Errorf("after %s it is %s, want %s", c.what, got, c.want)
			}
		}
		l = lead{}
		l.sent(0)
		time.Sleep(time.Minute)
		l.answered(1, &work.Batch{Repeated: true})
		time.Sleep(40 * time.Millisecond)
		l.answered(0, &work.Batch{})
		if got := l.time(); got != 60*time.Millisecond {
			t.Errorf("after claims that were in flight with one in doubt it is %s, want 60ms", got)
		}
	})
}
