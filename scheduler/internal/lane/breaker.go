package lane

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// breaker stops what a node asks of one master of a Cluster while that is unreachable: nothing is claimed, swept or registered there.
//
//	closed ── a call is not answered ──► open ── a call or a probe is answered, and no batch is in doubt ──► closed
//
// The breaker of an only server never opens, for there are no others to be spared: Health alone hears of it. It also does when the breakers of
// all masters are open.
//
// A breaker also knows whether too few replicas have what the master granted last, see Config.Confirm of the scheduler. Only claims wait then,
// until a probe is confirmed.
type breaker struct {
	health *Health
	master string // its address, for the log
	apart  bool   // there are other masters
	others interface{ unreachable() bool }

	mu          sync.Mutex
	silent      bool // the last call was not answered
	doubts      int  // batches that are repeated until they are answered
	unconfirmed bool
	back        time.Time // when claims were possible again; zero: they always were
	outage      trouble   // that it is open
	lack        trouble   // that it is unconfirmed
}

// open says whether the master is to be left alone.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen()
}

func (b *breaker) isOpen() bool { return b.silent || b.doubts > 0 }

// shut says whether nothing is claimed.
func (b *breaker) shut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen() || b.unconfirmed
}

func (b *breaker) isUnconfirmed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unconfirmed
}

// trouble is why nothing is claimed.
func (b *breaker) trouble() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := cmp.Or(b.lack.err, b.outage.err); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

// fail takes up that a role's call failed.
func (b *breaker) fail(role string, err error) {
	if !b.apart || !errors.Is(err, locking.ErrUnreachable) {
		b.health.Fail(role, err)
		return
	}
	if redisconn.OfSlot(err) { // one partition moves, the master is there
		b.health.unanswered(err)
		return
	}
	b.mu.Lock()
	b.silent = true
	b.mu.Unlock()
	if b.others.unreachable() {
		b.health.Fail(role, err)
		return
	}
	b.health.unanswered(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage.again(err) {
		b.health.log.Warn("a master of the Cluster does not answer; jobs of its partitions wait, all others go on", "master", b.master,
			"error", err, "for", time.Since(b.outage.since).Round(time.Millisecond))
	}
}

// full takes the refusal of a master that has no memory or disk left for what it is to the other masters: one that is unreachable. Of an only
// server it stays a refusal, which is said as such.
func (b *breaker) full(err error) error {
	if b.apart && redisconn.Full(err) {
		return fmt.Errorf("%w: %w", locking.ErrUnreachable, err)
	}
	return err
}

// ok takes up that a role's call was answered.
func (b *breaker) ok(role string) {
	b.change(func() { b.silent = false })
	b.health.OK(role)
}

// unsure takes up that too few replicas have what the master wrote, for such a reason; nil: that enough have it.
func (b *breaker) unsure(err error) {
	b.change(func() { b.unconfirmed = err != nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil && b.lack.again(err):
		b.health.log.Warn("replicas do not confirm what is granted; it is handed back, and nothing is claimed until they do",
			"master", b.master, "error", err, "for", time.Since(b.lack.since).Round(time.Millisecond))
	case err == nil && b.lack.err != nil:
		b.health.log.Info("replicas confirm what is granted again", "master", b.master, "after", time.Since(b.lack.since).Round(time.Millisecond))
		b.lack = trouble{}
	}
}

// change does something, after which the breaker may be closed.
func (b *breaker) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, shut := b.isOpen(), b.isOpen() || b.unconfirmed
	do()
	if shut && !b.isOpen() && !b.unconfirmed {
		b.back = time.Now()
	}
	if open && !b.isOpen() && b.outage.err != nil {
		b.health.log.Info("the master of the Cluster answers again", "master", b.master, "after", time.Since(b.outage.since).Round(time.Millisecond))
		b.outage = trouble{}
	}
}

// asks takes up that grants are given again after a failover: who goes first asks at once, and nobody's turn counts from before.
func (b *breaker) asks() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now().Add(-askedAnew); now.After(b.back) {
		b.back = now
	}
}

// late is how late something counts as for the turns of nodes, like Health.late.
func (b *breaker) late(by time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.back.IsZero() {
		by = min(by, time.Since(b.back)-askedAnew)
	}
	return by
}

// doubt is about one batch, which may have been carried out. A breaker is open while it lasts.
type doubt struct{ of *breaker }

// begin begins it, or goes on with it, at a breaker.
func (d *doubt) begin(b *breaker) {
	if d.of == b {
		return
	}
	d.end()
	d.of = b
	b.change(func() { b.doubts++ })
}

// end ends it, if it has begun.
func (d *doubt) end() {
	if b := d.of; b != nil {
		d.of = nil
		b.change(func() { b.doubts-- })
	}
}
