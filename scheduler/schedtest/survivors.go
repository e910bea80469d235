package schedtest

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
)

// waitedFor is for how long after Redis is back the other nodes surely wait for a paused one:
// failover_hold, less the time that the paused node needs then.
const waitedFor = 2 * time.Second

// survived records for each emptied Redis whether processes lived through it, which then report its
// losses. Where its clock was stepped, the ticks that came due are unknown.
func (c *cluster) survived(disturbed []audit.Disturbance) {
	if len(c.redis.steps) > 0 {
		return
	}
	for i := range disturbed {
		d := &disturbed[i]
		if d.Struck.IsZero() {
			continue
		}
		d.AllLived = true
		for _, p := range c.processes {
			if p.born.After(d.Until.Add(c.settle)) || !p.died.IsZero() && p.died.Before(d.Struck.Add(-c.settle)) {
				continue // it has no knowledge of the loss
			}
			lived := c.livedThrough(p, *d)
			d.SomeLived, d.AllLived = d.SomeLived || lived, d.AllLived && lived
		}
	}
}

// livedThrough reports whether a process had registered its jobs when Redis went, and was
// undisturbed, as was Redis, until it had reported to the new server.
func (c *cluster) livedThrough(p *process, d audit.Disturbance) bool {
	from, to := d.Struck.Add(-c.settle), d.Until.Add(c.settle)
	if p.born.After(d.Struck.Add(-firstWords)) || !p.died.IsZero() && p.died.Before(to) || time.Now().Before(to) {
		return false
	}
	return !slices.ContainsFunc(c.disturbed, func(o audit.Disturbance) bool {
		other := o.What != d.What || !o.Struck.Equal(d.Struck)
		hits := len(o.Nodes) == 0 || slices.Contains(o.Nodes, p.slot.name)
		if !o.Struck.IsZero() {
			return false // a process that lives through the one lives through the other
		}
		if o.What == string(Pause) && !o.Until.After(d.Until.Add(waitedFor)) {
			return false // the other nodes wait for it
		}
		return other && hits && o.Job == "" && !o.From.After(to) && !o.Until.Before(from)
	})
}
