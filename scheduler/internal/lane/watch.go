package lane

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// checkPause is how long an early check waits, so that many requests make one.
const checkPause = 50 * time.Millisecond

// watchClock samples Redis' clock until ctx ends. The sample of an only server also gives its id,
// which drives the failover.
func (n *Lanes) watchClock(ctx context.Context) {
	step := func() time.Duration {
		if n.clustered {
			return failover.SampleEvery
		}
		return n.link(0).epochs.Step(ctx)
	}
	watch(ctx, n.Health.check, step(), func() time.Duration {
		n.Resample(ctx)
		return step()
	})
}

// watch reads the id of a master of a Cluster until ctx ends, and drives the failover.
func (l *Lane) watch(ctx context.Context) {
	watch(ctx, l.check, l.epochs.Step(ctx), func() time.Duration {
		l.epochs.Check(ctx)
		return l.epochs.Step(ctx)
	})
}

// Resample samples the clock for callers that go on whatever the result is.
func (n *Lanes) Resample(ctx context.Context) {
	sample, err := n.sampleClock(ctx)
	switch {
	case err == nil:
		n.Health.OK("clock") // heartbeats show whether its master takes writes
		if !n.clustered {
			n.link(0).epochs.Notice(sample)
		}
	case ctx.Err() == nil:
		n.control.Fail("clock", err)
	}
}

// sampleClock samples Redis' clock once, logs steps and restarts, and returns the sample, without incarnations when a later one has
// overtaken it.
func (n *Lanes) sampleClock(ctx context.Context) (s ledger.Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	sent := time.Now()
	if s, err = n.Ledger.Sample(ctx); err != nil {
		return s, err
	}
	received := time.Now()
	if !n.clustered {
		s.Server = n.recognized(ctx, s.Server)
	}
	got := n.Clock.add(sent, received, s.Now, s.Server)
	switch {
	case got.Refused:
		n.Log.Error("Redis' clock stepped too far to be believed; nothing is claimed until it is corrected", "step", got.Step, "error", n.Clock.Usable())
	case got.Step.Abs() > n.MaxSkew && n.Clock.Usable() == nil:
		n.Log.Warn("Redis' clock stepped; the node follows it", "step", got.Step)
	}
	if got.Restart {
		n.Log.Warn("Redis was restarted or failed over: this node asserts its runs to it, and leases are not reaped until its clock has run steadily for their ttl")
	}
	if got.Overtaken {
		s.Server, s.Incarnations = n.Clock.Server(), nil
	}
	return s, nil
}

// recognized is this node's id for an only server that returned this id.
func (n *Lanes) recognized(ctx context.Context, id string) string {
	m, _ := n.Ledger.Master(ctx, 0)
	id, err := epoch.Recognize(ctx, n.Ledger, m, 0, id, n.Clock.Server())
	if r := n.routes.Load(); r != nil {
		r.all[0].epochs.SetIdentified(err == nil)
	}
	return id
}

// watch calls do until ctx ends: after first, then after the time that do returned, and at each
// signal.
func watch(ctx context.Context, look <-chan struct{}, first time.Duration, do func() time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-look:
			wait.For(ctx, checkPause) // many signals make one call
		}
		wait.Drop(look)
		timer.Reset(do())
	}
}
