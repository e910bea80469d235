package lane

import (
	"context"
	"time"
)

// sampleEvery is how often the node looks at Redis' clock, and who its masters are.
const sampleEvery = time.Second

// lookPause is how long a look waits that was asked for out of its turn.
const lookPause = 50 * time.Millisecond

// watchClock samples Redis' clock until ctx ends. The sample of an only server says who it is, too, and what follows from that is done.
func (n *Lanes) watchClock(ctx context.Context) {
	step := func() time.Duration {
		if n.apart {
			return sampleEvery
		}
		return n.of(0).failover.step(ctx)
	}
	watch(ctx, n.Health.look, step(), func() time.Duration {
		n.Resample(ctx)
		return step()
	})
}

// watch asks a master of a Cluster who it is, until ctx ends, and sees to it that it is told what the one before it knew.
func (l *Lane) watch(ctx context.Context) {
	f := l.failover
	watch(ctx, f.look, f.step(ctx), func() time.Duration {
		f.ask(ctx)
		return f.step(ctx)
	})
}

// Resample is sampleClock for those who go on whatever it says.
func (n *Lanes) Resample(ctx context.Context) {
	server, err := n.sampleClock(ctx)
	switch {
	case err == nil:
		n.Health.OK("clock") // its master is there when it takes beats
		if !n.apart {
			n.of(0).failover.named(server)
		}
	case ctx.Err() == nil:
		n.home.fail("clock", err)
	}
}

// sampleClock looks at Redis' clock once, says what it saw, and returns the id of the server.
func (n *Lanes) sampleClock(ctx context.Context) (server string, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	sent := time.Now()
	redisTime, id, err := n.Ledger.Time(ctx)
	if err != nil {
		return "", err
	}
	received := time.Now()
	if !n.apart {
		id = n.recognized(ctx, id)
	}
	got := n.Clock.add(sent, received, redisTime, id)
	switch {
	case got.Refused:
		n.Log.Error("Redis' clock made a step that is not believed; nothing is claimed until it is put right", "step", got.Step, "error", n.Clock.Usable())
	case got.Step.Abs() > n.MaxSkew && n.Clock.Usable() == nil:
		n.Log.Warn("Redis' clock made a step; it is followed", "step", got.Step)
	}
	if got.Restart {
		n.Log.Warn("Redis was restarted or failed over: what it may have lost is told to it, and leases are not reaped until its clock has run steadily for their ttl")
	}
	return n.Clock.Server(), nil
}

// recognized is the id by which an only server is known from now on, that has given this one.
func (n *Lanes) recognized(ctx context.Context, id string) string {
	m, _ := n.Ledger.Master(ctx, 0)
	id, err := n.Ledger.Recognize(ctx, m, 0, id, n.Clock.Server())
	if r := n.routes.Load(); r != nil {
		r.all[0].failover.partly.Store(err != nil)
	}
	return id
}
