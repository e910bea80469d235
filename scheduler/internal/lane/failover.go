package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// Holding returns why the node claims nothing; nil when it may claim from some partition.
func (n *Lanes) Holding() (err error) {
	for _, l := range n.all() {
		switch why := l.epochs.Err(); {
		case why == nil:
			return nil
		case err == nil || errors.Is(err, failover.ErrYoung):
			err = why
		}
	}
	return err
}

// restore restores lost records. Without the control record's master they stay lost for now.
func (n *Lanes) restore(ctx context.Context, parts []int) error {
	err := n.Restore(ctx, parts)
	if errors.Is(err, ErrControlMaster) {
		n.Beaten(err)
		return nil
	}
	return err
}

// Recheck requests an early check of the epochs of all lanes.
func (n *Lanes) Recheck() {
	for _, l := range n.all() {
		l.epochs.Recheck()
	}
}

// Held reports whether an epoch has begun in which this node waits for other nodes before it claims.
func (n *Lanes) Held() bool {
	return slices.ContainsFunc(n.all(), func(l *Lane) bool { return l.epochs.Held() })
}

// Servers are the masters, for the roster, to which this node has asserted its runs, and the masters that
// have restored them.
func (n *Lanes) Servers() (asserted, restored string) {
	var all, have []string
	for _, l := range n.all() {
		t, p := l.epochs.Servers()
		if t != "" {
			all = append(all, t)
		}
		if p != "" {
			have = append(have, p)
		}
	}
	return epoch.JoinFingerprints(all), epoch.JoinFingerprints(have)
}

// Seen notes the reports of other nodes in the roster.
func (n *Lanes) Seen(members []roster.Member, nodes []sharding.Node) {
	for _, l := range n.all() {
		l.epochs.Seen(members, nodes)
	}
}

// AssertBeforeLeaving lets a stopping node assert its runs to the masters that lack them, for FailoverHold at most.
func (n *Lanes) AssertBeforeLeaving(ctx context.Context) {
	if !n.Unreachable() {
		n.Resample(ctx)
	}
	if n.clustered {
		var all sync.WaitGroup
		for _, l := range n.all() {
			all.Go(func() { l.epochs.Check(ctx) })
		}
		all.Wait()
	}
	for end := time.Now().Add(n.FailoverHold); time.Now().Before(end) && !n.Unreachable(); {
		asserted := true
		for _, l := range n.all() {
			asserted = asserted && (l.breaker.open() || l.epochs.Asserted() && l.epochs.Identified())
		}
		if asserted || !wait.For(ctx, failover.AssertEvery/4) {
			return
		}
		for _, l := range n.all() {
			l.epochs.Recheck()
		}
	}
}

// Registered notes a registered job's cursor.
func (n *Lanes) Registered(j *work.Job, cursor int64) {
	n.reporter.Cursors.Registered(j, cursor, n.Clock.Now().UnixMilli())
}

// Displaced notes that another definition of a job is stored, or that the job was removed.
func (n *Lanes) Displaced(j *work.Job) { n.reporter.Cursors.Displaced(j) }

// Changes counts the changes of epochs that this node has noticed. Records that Redis no longer has after
// another change may have been lost, and not removed by a person.
func (n *Lanes) Changes() (sum int) {
	for _, l := range n.all() {
		sum += l.epochs.Changes()
	}
	return sum
}
