package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// aheadMin is how long before it is due a tick is asked for at least, and ledger.AheadMax at most.
const aheadMin = 20 * time.Millisecond

// lead is how long before they are due ticks are asked for, so that their runs wait for the clock and not for Redis: as long as
// the claims of one instant take until all are answered, and half as long again. A longer time is taken up at once, a shorter one bit by bit.
type lead struct {
	fixed time.Duration // Config.ClaimAhead, 0: it is measured
	begun time.Time     // when the first of the claims that are in flight was sent
	spent time.Duration // as measured
}

func (l *lead) time() time.Duration {
	switch {
	case l.fixed < 0:
		return 0
	case l.fixed > 0:
		return l.fixed
	}
	return min(ledger.AheadMax, max(aheadMin, l.spent*3/2))
}

// asked takes up that a batch is sent while so many are in flight.
func (l *lead) asked(inflight int) {
	if inflight == 0 {
		l.begun = time.Now()
	}
}

// answered takes up a batch that came back, with so many left in flight. What had to be asked twice tells of an outage.
func (l *lead) answered(inflight int, b *work.Batch) {
	switch {
	case b.Err != nil || b.Again:
		l.begun = time.Now() // what is in flight still has waited with it
	case inflight == 0:
		l.spent = max(time.Since(l.begun), l.spent*9/10)
	}
}
