package schedtest

import (
	"cmp"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/schedtest/internal/wire"
)

// messageSpan is how long the loss of a message can be felt: a call's time limit and a new try.
const messageSpan = 2 * time.Second

// armed is a fault that has not struck yet.
type armed struct {
	Fault
	left int // how often its point must still be reached
}

// arm makes a fault ready.
func (c *cluster) arm(f Fault) {
	if f.At != "" {
		c.armed = append(c.armed, &armed{Fault: f, left: max(1, f.Nth)})
		return
	}
	c.post(c.began.Add(f.When), -1, wire.Fold(0, f.String()), func() {
		if !c.over {
			c.apply(f, c.sitting(f.Node))
		}
	})
}

// sitting is the process in a slot; nil when none was there yet, or there is no such slot.
func (c *cluster) sitting(name string) *process {
	for _, s := range c.nodeSlots {
		if s.name == name {
			return s.process
		}
	}
	return nil
}

// strike lets the faults strike that wait for a process to come to a point, and returns the one
// that hits the message, if there is one.
func (c *cluster) strike(when, op string, p *process) *Fault {
	if op == "" || p.dead {
		return nil
	}
	point, elapsed := Point(when+" "+op), c.elapsed()
	var hit *Fault
	var kept []*armed
	for _, a := range c.armed {
		here := a.At == point && elapsed >= a.When && (a.Node == "" || a.Node == p.slot.name)
		if here {
			a.left--
		}
		if !here || a.left > 0 || a.ofMessage() && hit != nil {
			kept = append(kept, a)
			continue
		}
		c.apply(a.Fault, p)
		if a.ofMessage() {
			hit = &a.Fault
		}
	}
	c.armed = kept
	return hit
}

// lostOn extends the excuse of lost writes: with Redis away again before the nodes could write the
// lost records anew, the loss lasts until then.
func (c *cluster) lostOn(until time.Time) {
	for i, d := range c.disturbed {
		if d.Loses && time.Since(d.Until) < c.settle && d.Until.Before(until) {
			c.disturbed[i].Until = until
		}
	}
}

// apply carries out a fault, on the process that it hits (nil: on Redis).
func (c *cluster) apply(f Fault, p *process) {
	if f.ofRedis() && !c.redis.up || !f.ofRedis() && (p == nil || p.dead) {
		return // there is nothing to hit
	}
	c.seen["fault: "+string(f.Do)]++
	if f.At != "" {
		c.seen["aimed faults"]++
	} else {
		c.seen["timed faults"]++
	}
	until := time.Now().Add(f.For)
	d := audit.Disturbance{Span: audit.Span{From: c.oldestLost(f), Until: until}, What: string(f.Do), Lossy: f.loses(), Loses: f.loses() && !c.plan.strict}
	if f.empties() {
		d.Struck = time.Now()
	}
	who := "redis"
	if !f.ofRedis() {
		who = p.slot.name
		d.Nodes = []string{who}
	}
	c.note(who, "FAULT %s", f)
	switch {
	case f.ofRedis():
		c.applyToRedis(f, until)
		c.lostOn(until)
		if f.Do == StepRedis {
			d.Until = c.believedFrom()
		}
	case f.ofMessage():
		d.Until = until.Add(messageSpan)
	case f.Do == Deploy: // a deploy concerns every node's definitions
		c.applyToNode(f, p, until)
		d.Nodes, d.What = nil, "drain and deploy"
	default:
		c.applyToNode(f, p, until)
	}
	if f.Do == StepNode || f.Do == FlushScripts {
		return // these excuse nothing
	}
	c.disturbed = append(c.disturbed, d)
	if len(d.Nodes) > 0 && c.mixed() { // it may have hit the only node with the definition that counts
		d.Nodes, d.What = nil, d.What+" amid a deploy"
		c.disturbed = append(c.disturbed, d)
	}
}

// step moves Redis' clock.
func (c *cluster) step(by time.Duration) {
	c.sink.steps(c.redisTime())
	c.stepBy(by)
}

// takeBack moves Redis' clock back after a step, unless the clock was set right meanwhile.
func (c *cluster) takeBack(by time.Duration) {
	if c.healed || c.over {
		return
	}
	c.note("redis", "its clock is taken back by %s", by)
	c.step(-by)
	c.believedFrom()
}

// believedFrom returns when the nodes go by Redis' clock again after a step. A disbelieved step
// that was taken back excuses nothing from then on, unless a node's wall clock is wrong: that node
// may have believed the step.
func (c *cluster) believedFrom() time.Time {
	now, healed := time.Now(), c.began.Add(cmp.Or(c.plan.Heal, c.plan.For))
	if off := c.redis.stepped(now); off.Abs() > c.plan.Config.MaxStep {
		return healed
	}
	for _, s := range c.nodeSlots {
		if s.wallOff.Load() != 0 {
			return now
		}
	}
	for i, d := range c.disturbed {
		if d.What == string(StepRedis) && d.Until.After(now) {
			c.disturbed[i].Until = now
		}
	}
	return now
}

// mixed reports whether processes of different versions live.
func (c *cluster) mixed() bool {
	for _, s := range c.nodeSlots {
		if s.process != nil && s.process.version != c.nodeSlots[0].version {
			return true
		}
	}
	return false
}

func (c *cluster) applyToRedis(f Fault, until time.Time) {
	switch f.Do {
	case StepRedis:
		c.step(f.By)
		if f.For > 0 {
			c.post(until, -1, wire.Fold(1, f.String()), func() { c.takeBack(f.By) })
		}
	case FlushScripts:
		c.flushScripts()
		c.redis.forgot = true
	case FlushRedis:
		c.restart(f)
	case FlipRedis:
		c.restart(f)
		c.post(until, -1, wire.Fold(1, f.String()), func() {
			if c.redis.up {
				c.restart(f)
			}
		})
	default:
		c.redis.up = false
		c.post(until, -1, wire.Fold(1, f.String()), func() {
			if !c.redis.up {
				c.restart(f)
			}
		})
	}
}

func (c *cluster) applyToNode(f Fault, p *process, until time.Time) {
	switch f.Do {
	case Crash:
		c.crash(p)
		if f.For > 0 {
			c.post(until, p.no, wire.Fold(2, f.String()), func() { c.replaceProcess(p) })
		}
	case Pause:
		p.pausedUntil = until
	case Cut:
		p.cutUntil = [2]time.Time{until, until}
	case CutRequests:
		p.cutUntil[requests] = until
	case CutReplies:
		p.cutUntil[replies] = until
	case StepNode:
		p.slot.wallOff.Add(int64(f.By))
	case Deploy:
		p.slot.version = f.Version
		c.replace(p, f.For)
	case Drain:
		c.replace(p, f.For)
	default:
	}
}

// heal ends every fault and mends its damage.
func (c *cluster) heal() {
	c.idle, c.armed, c.healed = c.armed, nil, true
	c.note("", "all faults end")
	if !c.redis.up {
		c.restart(Fault{Do: StopRedis})
	}
	if off := c.redis.stepped(time.Now()); off.Abs() > c.plan.Config.MaxStep { // else the nodes follow it
		c.note("redis", "its clock is set right")
		c.stepBy(-off)
	}
	now := time.Now()
	for _, s := range c.nodeSlots {
		p := s.process
		p.pausedUntil, p.cutUntil = now, [2]time.Time{now, now}
		if p.dead {
			c.replaceProcess(p)
		}
	}
}
