package schedtest

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// catchUp says whether it is known what a job's catch-up policy says of a tick that was granted: its definitions
// have the same, and no busy window has a say.
func (t *tale) catchUp(g given) bool {
	defs := t.defs(g.job)
	for _, j := range defs {
		waits := j.Overlap == jobs.OverlapQueue || j.Overlap == jobs.OverlapReplace
		if waits || j.CatchUp != defs[0].CatchUp || j.CatchUpMax != defs[0].CatchUpMax {
			return false
		}
	}
	return !g.pending && t.schedule(g.job) != nil
}

// caughtUp: of ticks that are later than those which run in their order, the catch-up policy lets some run.
func (t *tale) caughtUp() {
	slack := t.plan.withDefaults().Config.MaxSkew.Milliseconds() + 50
	for _, g := range t.steps() {
		if !t.catchUp(g) || g.ms-g.tick <= lateBound+slack {
			continue
		}
		j, s := t.defs(g.job)[0], t.schedule(g.job)
		newer, late := 0, 1 // ticks of the gap that came after this one; those that are too late to run in order, with it
		for at := s.Next(time.UnixMilli(g.tick)); at.UnixMilli() < g.ms-slack; at = s.Next(at) {
			if t.pausedAt(g.job, at.UnixMilli()) {
				continue
			}
			newer++
			if at.UnixMilli() < g.ms-lateBound-slack {
				late++
			}
		}
		switch {
		case j.CatchUp == jobs.CatchUpNone, j.CatchUp == jobs.CatchUpLatest && newer > 0:
			t.blame("%s: granted to %s at %d with catch_up %s, and so late it should not have run", g.lineage(), g.run, g.ms, j.CatchUp)
		case j.CatchUp == jobs.CatchUpAll && late > j.CatchUpMax:
			t.blame("%s: granted to %s at %d; with it %d ticks are made up for, at most %d", g.lineage(), g.run, g.ms, late, j.CatchUpMax)
		}
	}
}
