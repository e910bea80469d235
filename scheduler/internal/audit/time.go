package audit

import (
	"slices"
	"strings"
	"time"
)

// acts reports whether a disturbance, or its aftermath, fell between two instants, both included.
func (c *Case) acts(d Disturbance, from, to time.Time) bool {
	if to.Before(from) { // the clock was set back between the two
		from, to = to, from
	}
	return !d.From.IsZero() && !d.From.After(to) && (d.Until.IsZero() || !d.Until.Add(c.Settle).Before(from))
}

// disturbed reports whether a disturbance acted between two instants. Which nodes were hit does not
// matter: the ticks of an absent node go to other nodes.
func (c *Case) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return c.acts(d, from, to) })
}

// calm reports whether the cluster was undisturbed for long enough between two instants. enough
// returns the end of a long enough stretch that begins at an instant.
func (c *Case) calm(from, end time.Time, enough func(time.Time) time.Time) bool {
	begins := []time.Time{from}
	for _, d := range c.Disturbed {
		if over := d.Until.Add(c.Settle + 1); !d.Until.IsZero() && over.After(from) {
			begins = append(begins, over)
		}
	}
	return slices.ContainsFunc(begins, func(at time.Time) bool {
		until := enough(at)
		return until.Before(end) && !c.disturbed(at, until)
	})
}

// struck reports whether a disturbance between two instants hit the node of this name or id, or
// every node. drained: of disturbances that hit every node, only a drain counts, because only a
// drain cancels runs.
func (c *Case) struck(from, to time.Time, node, id string, drained bool) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool {
		everybody := len(d.Nodes) == 0 && d.Job == "" && (!drained || strings.Contains(d.What, "drain"))
		hit := everybody || slices.Contains(d.Nodes, node) || slices.Contains(d.Nodes, id)
		return hit && c.acts(d, from, to)
	})
}

// lossNear reports whether Redis may have lost its records of an instant, or of the time until
// Settle after it.
func (c *Case) lossNear(at time.Time) bool {
	return c.lossBetween(at, at.Add(c.Settle))
}

// lossy reports whether Redis has lost its records of the first instant before the second.
func (c *Case) lossy(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Lossy && c.acts(d, from, to) })
}

// lossBetween reports whether Redis may have lost its records of the first instant before the
// second.
func (c *Case) lossBetween(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Loses && c.acts(d, from, to) })
}

// lossAfter reports whether Redis may have lost its records of an instant before the books were
// read: an emptied Redis loses all earlier records.
func (c *Case) lossAfter(at time.Time) bool { return c.lossBetween(at, c.Read) }

// remembered reports whether nodes that lived through a loss know the lost records of a tick: all
// nodes (P1), or at least one (P2). Rows of ticks that were due before the loss are gone, so P2 is
// judged for later ticks only; the nodes do know that the earlier ones ran.
func (c *Case) remembered(at time.Time, all bool) bool {
	known := false
	for _, d := range c.Disturbed {
		if !d.Loses || !c.acts(d, at, c.Read) {
			continue
		}
		if d.Struck.IsZero() || !all && at.Before(d.Struck) || !d.SomeLived || all && !d.AllLived {
			return false
		}
		known = true
	}
	return known
}

// pausedAt reports whether the job was paused when a tick came due or when the tick was recorded:
// an overdue tick is recorded as paused too.
func (t *trial) pausedAt(tick, recorded time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(recorded.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Skew).After(tick))
	})
}

// pausedBetween reports whether the job was paused at some time between two instants.
func (t *trial) pausedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(to.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Settle).After(from))
	})
}
