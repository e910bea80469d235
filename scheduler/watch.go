package scheduler

import (
	"context"
	"time"
)

// sampleEvery is how often the node looks at Redis' clock.
const sampleEvery = time.Second

// watchClock samples Redis' clock until ctx ends.
func (n *Node) watchClock(ctx context.Context) {
	timer := time.NewTimer(sampleEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(sampleEvery)
			n.resample(ctx)
		}
	}
}

// resample is sampleClock for those who go on whatever it says.
func (n *Node) resample(ctx context.Context) {
	err := n.sampleClock(ctx)
	if err == nil {
		n.health.ok("clock")
	} else if ctx.Err() == nil {
		n.health.fail("clock", err)
	}
}

// sampleClock looks at Redis' clock once and says what it saw.
func (n *Node) sampleClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := time.Now()
	redisTime, runID, err := n.ledger.Time(ctx)
	if err != nil {
		return err
	}
	got := n.clock.add(sent, time.Now(), redisTime, runID)
	switch {
	case got.Refused:
		n.log.Error("Redis' clock made a step that is not believed; nothing is claimed until it is put right", "step", got.Step, "error", n.clock.usable())
	case got.Step.Abs() > n.cfg.MaxSkew && n.clock.usable() == nil:
		n.log.Warn("Redis' clock made a step; it is followed", "step", got.Step)
	}
	if got.Restart {
		n.log.Warn("Redis was restarted or failed over: leases are not reaped until its clock has run steadily for their ttl")
	}
	return nil
}
