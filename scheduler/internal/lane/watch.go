package lane

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/wait"
)

// sampleEvery is how often the node looks at Redis' clock.
const sampleEvery = time.Second

// lookPause is how long a look waits that was asked for out of its turn.
const lookPause = 50 * time.Millisecond

// WatchClock samples Redis' clock until ctx ends, and sees to it that a new server is told what the old one knew.
func (n *Lane) WatchClock(ctx context.Context) {
	timer := time.NewTimer(n.failover.step(ctx))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-n.failover.look:
			wait.For(ctx, lookPause) // many who ask are one
		}
		wait.Drop(n.failover.look)
		n.Resample(ctx)
		timer.Reset(n.failover.step(ctx))
	}
}

// Resample is sampleClock for those who go on whatever it says.
func (n *Lane) Resample(ctx context.Context) {
	err := n.sampleClock(ctx)
	if err == nil {
		n.quiet.ok("clock") // it is home when it takes beats
	} else if ctx.Err() == nil {
		n.quiet.fail("clock", err, home)
	}
}

// sampleClock looks at Redis' clock once and says what it saw.
func (n *Lane) sampleClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	sent := time.Now()
	redisTime, runID, err := n.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	received := time.Now()
	server, all := n.Ledger.Masters(ctx, runID, n.Clock.Server())
	n.failover.partly.Store(!all)
	got := n.Clock.add(sent, received, redisTime, server)
	switch {
	case got.Refused:
		n.Log.Error("Redis' clock made a step that is not believed; nothing is claimed until it is put right", "step", got.Step, "error", n.Clock.Usable())
	case got.Step.Abs() > n.MaxSkew && n.Clock.Usable() == nil:
		n.Log.Warn("Redis' clock made a step; it is followed", "step", got.Step)
	}
	if got.Restart {
		n.Log.Warn("Redis was restarted or failed over: what it may have lost is told to it, and leases are not reaped until its clock has run steadily for their ttl")
	}
	return nil
}
