package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// aheadMin is the shortest time before its due time at which a tick is claimed. The longest is
// ledger.AheadMax.
const aheadMin = 20 * time.Millisecond

// lead measures how long before their due time ticks are claimed, so that a run waits for the clock
// and not for Redis. It is one and a half times as long as the claims of one instant take. It grows
// at once and shrinks slowly.
type lead struct {
	fixed     time.Duration // Config.Ahead; 0: measured
	firstSent time.Time     // when the first of the claims in flight was sent
	measured  time.Duration // how long the claims of one instant took
}

func (l *lead) time() time.Duration {
	switch {
	case l.fixed < 0:
		return 0
	case l.fixed > 0:
		return l.fixed
	}
	return min(claim.AheadMax, max(aheadMin, l.measured*3/2))
}

// sent notes that a batch is sent while so many are in flight.
func (l *lead) sent(inflight int) {
	if inflight == 0 {
		l.firstSent = time.Now()
	}
}

// answered notes that a batch came back, with so many left in flight. A repeated batch measures an
// outage, not the round trip, and does not count.
func (l *lead) answered(inflight int, b *work.Batch) {
	switch {
	case b.Err != nil || b.Repeated:
		l.firstSent = time.Now() // the batches still in flight have waited for the outage too
	case inflight == 0:
		l.measured = max(time.Since(l.firstSent), l.measured*9/10)
	}
}
