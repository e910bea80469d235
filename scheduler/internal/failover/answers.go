package failover

import (
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrYoung is why a node that joins claims nothing yet.
var ErrYoung = errors.New("Redis has just been started, or has lost records: nothing is claimed until nodes that know of runs have had the time to report them")

// ErrHolding is why a node claims nothing while runs are reported.
var ErrHolding = errors.New("Redis was restarted, has failed over or lost records: nothing is claimed until every node has reported its runs")

// EpochID is the id of a partition's current epoch; an id that every script refuses when none is known.
func (es *Epochs) EpochID(part int) string {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.id(part)
}

// Claims returns the id of the epoch in which runs of a partition may be claimed; false when there is none.
func (es *Epochs) Claims(part int) (epoch string, may bool) {
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.epochs[part]
	if e == nil || e.State() != Open {
		return "", false
	}
	return e.ID(), true
}

// Blocks reports whether nothing is claimed from a partition.
func (es *Epochs) Blocks(part int) bool {
	_, may := es.Claims(part)
	return !may
}

// Err is why nothing is claimed; nil when some partition is claimed from.
func (es *Epochs) Err() error {
	es.mu.Lock()
	defer es.mu.Unlock()
	switch {
	case !es.every(func(e *Epoch) bool { return e.State() != Open }):
		return nil
	case es.neverClaimed():
		return ErrYoung
	}
	return ErrHolding
}

// Held reports whether an epoch has begun in which this node waits for other nodes: for Hold, as Step does.
func (es *Epochs) Held() bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	return time.Since(es.since) < es.Hold && !es.every(func(e *Epoch) bool { return !known(e) || e.State() == Open })
}

// Asserted reports whether all runs were reported in the current epochs.
func (es *Epochs) Asserted() bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.every(reached(Restoring))
}

// UnchangedFor is the time since a change was last noticed.
func (es *Epochs) UnchangedFor() time.Duration {
	es.mu.Lock()
	defer es.mu.Unlock()
	if !es.every(known) {
		return 0
	}
	return time.Since(es.since)
}

// Changes counts the changes of epochs that this node has noticed.
func (es *Epochs) Changes() int {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.changes
}

// Keeps returns the epoch in which a partition's leases are renewed and its reports recorded. placed is false while one of these runs is
// not restored yet.
func (es *Epochs) Keeps(part int, runs ...string) (epochID string, placed bool) {
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.epochs[part]
	if e == nil || e.State() < Restoring {
		return epoch.Nobody, true
	}
	for _, run := range runs {
		if _, waits := es.unrestored[run]; waits {
			return e.ID(), false
		}
	}
	return e.ID(), true
}

// Begins reports whether the epoch in which a run was granted is still the last epoch that this node has
// noticed. In that epoch the node reports the run from now on. A run of another epoch must not
// begin, because it can no longer be asserted.
func (es *Epochs) Begins(g work.Grant) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	if e := es.epochs[g.Job.Part]; e == nil || e.ID() != g.Epoch {
		return false
	}
	es.Reporter.Cursors.stepped(g, es.Clock.Now().UnixMilli())
	return true
}

// Answered notes the cursors in answers, if they are of the last epoch that this node has
// noticed.
func (es *Epochs) Answered(b *work.Batch) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if e := es.epochs[b.Part]; e != nil && e.ID() == b.Epoch {
		e.Answered(b.Epoch, es.Clock.Now().UnixMilli())
		es.Reporter.Cursors.answered(b, es.Clock.Now().Add(-time.Since(b.LastSent)).UnixMilli())
	}
}

// Ended reports whether an epoch is the last epoch that this node has noticed for a partition. If
// so, it remembers the ends of runs that Redis has recorded, for a later epoch in which they may be
// lost. In a newer epoch these runs were reported as going on.
func (es *Epochs) Ended(epoch string, part int, ends ...*Ending) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.epochs[part]
	if e == nil || e.ID() != epoch {
		return false
	}
	es.Reporter.Ends.add(ends)
	return true
}
