package audit

import (
	"slices"
	"strings"
	"time"
)

// acts says whether a disturbance, or what followed from it, fell between two instants, both included.
func (c *Case) acts(d Disturbance, from, to time.Time) bool {
	if to.Before(from) { // the clock was set back between the two
		from, to = to, from
	}
	return !d.From.IsZero() && !d.From.After(to) && (d.Until.IsZero() || !d.Until.Add(c.Settle).Before(from))
}

// disturbed says whether anything was wrong between two instants. Whom it hit does not matter: a
// node that is away leaves its ticks to others.
func (c *Case) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return c.acts(d, from, to) })
}

// calm says whether the cluster was left alone for long enough, at some time between two instants. enough gives the end of
// a stretch that is long enough and begins at an instant.
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

// struck says whether a disturbance acted between two instants that hit the node of this name or id, or everybody;
// of those that hit everybody, only a drain cancels runs.
func (c *Case) struck(from, to time.Time, node, id string, drained bool) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool {
		everybody := len(d.Nodes) == 0 && d.Job == "" && (!drained || strings.Contains(d.What, "drain"))
		hit := everybody || slices.Contains(d.Nodes, node) || slices.Contains(d.Nodes, id)
		return hit && c.acts(d, from, to)
	})
}

// lossNear says whether Redis may have lost what it knew of an instant, or gave what came of that.
func (c *Case) lossNear(at time.Time) bool {
	return c.lossBetween(at, at.Add(c.Settle))
}

// lossy says whether Redis has lost, between two instants, what it knew at the first.
func (c *Case) lossy(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Lossy && c.acts(d, from, to) })
}

// lossBetween says whether Redis may have lost between two instants what it knew at the first.
func (c *Case) lossBetween(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Loses && c.acts(d, from, to) })
}

// lossAfter says whether Redis may have lost, up to the reading of the books, what it knew at an
// instant: one that is emptied loses all that went before.
func (c *Case) lossAfter(at time.Time) bool { return c.lossBetween(at, c.Read) }

// remembered says whether what Redis lost of a tick is known to nodes that lived through it: all of them (P1), or some (P2). Rows of
// ticks that were due before are gone, so P2 is judged of later ones; that they ran, the nodes know.
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

// pausedAt says whether the job was paused when a tick came due, or when that was recorded: what was overdue then is
// recorded as paused as well.
func (t *trial) pausedAt(tick, recorded time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(recorded.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Skew).After(tick))
	})
}

// pausedBetween says whether the job was paused at some time between two instants.
func (t *trial) pausedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(to.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Settle).After(from))
	})
}
