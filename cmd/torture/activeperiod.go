//go:build unix

package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// usurper is a generation that ran what was another one's.
const usurper judge.Kind = "STANDBY"

// reign is when a generation may claim: from the start of the command that promotes it to the answer of the one that
// promotes another. Both ends are this machine's time, as are Redis' and the sink's.
type activePeriod struct {
	generation string
	window
}

// underWay is how long after its grant a run may start.
const underWay = time.Second

// usurped are lines of a generation outside of its reigns. A run that was granted within one may start shortly after it, and
// end whenever it does; started says when each did, and inFlight counts their lines. When they were granted is not recorded: what
// is known is that their ticks were due before the end of the reign, and turns looks at the order of the grants.
func usurped(lines []line, started map[string]time.Time, reigns []activePeriod) (wrong []judge.Finding, inFlight int) {
	for _, l := range lines {
		at, known := started[l.run]
		own := func(r activePeriod) bool { return r.generation == l.label }
		switch {
		case slices.ContainsFunc(reigns, func(r activePeriod) bool { return own(r) && r.holds(l.at) }):
		case known && slices.ContainsFunc(reigns, func(r activePeriod) bool {
			return own(r) && !l.tick.After(r.to) && window{r.from, r.to.Add(underWay)}.holds(at)
		}):
			inFlight++
		default:
			wrong = append(wrong, judge.NewFinding(usurper, l.job, l.tick, "generation %s was not active: %s", l.label, l))
		}
	}
	return wrong, inFlight
}

// turns checks for each job that generations ran it in the order of the reigns, one after another: in the order of the tokens,
// which is that of the grants.
func turns(all []job, lines []line, reigns []activePeriod) []judge.Finding {
	var path []string
	for _, r := range reigns {
		path = append(path, r.generation)
	}
	var wrong []judge.Finding
	for _, j := range all {
		own := slices.DeleteFunc(starts(lines), func(l line) bool { return l.job != j.name })
		slices.SortStableFunc(own, func(a, b line) int { return cmp.Compare(a.token, b.token) })
		wrong = append(wrong, follows(usurper, path, own, func(l line) string { return l.label })...)
	}
	return wrong
}

// idle are reigns in which the generation ran nothing.
func idle(lines []line, reigns []activePeriod) []judge.Finding {
	var wrong []judge.Finding
	for _, r := range reigns {
		ran := false
		for _, l := range lines {
			ran = ran || l.label == r.generation && r.holds(l.at)
		}
		if !ran {
			wrong = append(wrong, judge.NewFinding(usurper, r.generation, time.Time{}, "it ran nothing from %s to %s, when it was active", stamp(r.from), stamp(r.to)))
		}
	}
	return wrong
}
