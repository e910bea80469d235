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

// breaker stops calls to one master of a Cluster while that master is unreachable. Nothing is
// claimed, swept or registered there.
//
//	closed ── a call is not answered ──► open ── a call or probe is answered, no batch is in doubt ──► closed
//
// The breaker of an only server never opens, because there are no other masters to protect;
// failures go to Health. They also go to Health while the breakers of all masters are open.
//
// A breaker also records whether enough replicas confirm the master's grants (Config.Confirm of the
// scheduler). If not, only claims wait, until a probe is confirmed.
type breaker struct {
	health         *Health
	master         string      // its address, for the log
	clustered      bool        // there are other masters
	allUnreachable func() bool // all masters are unreachable

	mu             sync.Mutex
	unanswered     bool // the last call was not answered
	doubtful       int  // how many batches are in doubt
	unconfirmed    bool
	claimableSince time.Time    // when claims became possible again; zero: they always were
	outage         lastingError // lasts while the breaker is open
	lack           lastingError // lasts while replicas do not confirm
}

// open reports whether nothing may be sent to the master.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen()
}

func (b *breaker) isOpen() bool { return b.unanswered || b.doubtful > 0 }

// blocks reports whether nothing may be claimed.
func (b *breaker) blocks() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen() || b.unconfirmed
}

func (b *breaker) isUnconfirmed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unconfirmed
}

// err is why nothing is claimed; nil when claims are possible.
func (b *breaker) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := cmp.Or(b.lack.err, b.outage.err); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

// Fail notes that a role's call failed.
func (b *breaker) Fail(role string, err error) {
	if !b.clustered || !errors.Is(err, locking.ErrUnreachable) {
		b.health.Fail(role, err)
		return
	}
	if redisconn.OfSlot(err) { // one partition moves; the master itself answers
		b.health.refresh(err)
		return
	}
	b.mu.Lock()
	b.unanswered = true
	b.mu.Unlock()
	if b.allUnreachable() {
		b.health.Fail(role, err)
		return
	}
	b.health.refresh(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage.repeat(err) {
		b.health.log.Warn("a master of the Cluster does not answer; jobs of its partitions wait, all others go on", "master", b.master,
			"error", err, "for", time.Since(b.outage.since).Round(time.Millisecond))
	}
}

// full treats a master without memory or disk like an unreachable one, for the sake of the other
// masters. For an only server it stays a refusal.
func (b *breaker) full(err error) error {
	if b.clustered && redisconn.Full(err) {
		return fmt.Errorf("%w: %w", locking.ErrUnreachable, err)
	}
	return err
}

// ok notes that a role's call was answered and not refused.
func (b *breaker) ok(role string) {
	b.answered()
	b.health.OK(role)
}

// answered notes that a call was answered.
func (b *breaker) answered() {
	b.change(func() { b.unanswered = false })
	b.health.answered()
}

// setConfirmed notes whether enough replicas have the master's writes: err is why not, nil when
// they do.
func (b *breaker) setConfirmed(err error) {
	b.change(func() { b.unconfirmed = err != nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil && b.lack.repeat(err):
		b.health.log.Warn("replicas do not confirm grants; the runs are handed back, and nothing is claimed until they do",
			"master", b.master, "error", err, "for", time.Since(b.lack.since).Round(time.Millisecond))
	case err == nil && b.lack.err != nil:
		b.health.log.Info("replicas confirm grants again", "master", b.master, "after", time.Since(b.lack.since).Round(time.Millisecond))
		b.lack = lastingError{}
	}
}

// change makes a change that may close the breaker.
func (b *breaker) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, shut := b.isOpen(), b.isOpen() || b.unconfirmed
	do()
	if shut && !b.isOpen() && !b.unconfirmed {
		b.claimableSince = time.Now()
	}
	if open && !b.isOpen() && b.outage.err != nil {
		b.health.log.Info("the master of the Cluster answers again", "master", b.master, "after", time.Since(b.outage.since).Round(time.Millisecond))
		b.outage = lastingError{}
	}
}

// Unknown notes that the client does not know the master.
func (b *breaker) Unknown() { b.health.refresh(locking.ErrUnreachable) }

// Restored notes that the node's runs are in place after a failover.
func (b *breaker) Restored() { b.health.OK("reassert") }

// GrantsResumed notes the end of a failover: nodes claim at once the jobs that they go first for, and turns
// start anew.
func (b *breaker) GrantsResumed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now().Add(-reclaimDelay); now.After(b.claimableSince) {
		b.claimableSince = now
	}
}

// overdue is how late something counts for the order of takeovers, see Health.overdue.
func (b *breaker) overdue(by time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.claimableSince.IsZero() {
		by = min(by, time.Since(b.claimableSince)-reclaimDelay)
	}
	return by
}

// inDoubt marks one batch that may have been carried out. The breaker stays open while it lasts.
type inDoubt struct{ of *breaker }

// begin marks the batch at a breaker.
func (d *inDoubt) begin(b *breaker) {
	if d.of == b {
		return
	}
	d.end()
	d.of = b
	b.change(func() { b.doubtful++ })
}

// end removes the mark, if there is one.
func (d *inDoubt) end() {
	if b := d.of; b != nil {
		d.of = nil
		b.change(func() { b.doubtful-- })
	}
}
