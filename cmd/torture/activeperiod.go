//go:build unix

package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// inactive is a generation that ran what was another one's.
const inactive judge.Kind = "STANDBY"

// activePeriod is when a generation may claim: from the start of the command that promotes it to the answer of the one that
// promotes another. Both ends are this machine's time, as are Redis' and the sink's.
type activePeriod struct {
	generation string
	window
}

// underWay is how long after its grant a run may start.
const underWay = time.Second

// ranInactive are lines of a generation outside of its periods. A run that was granted within one may start shortly after it, and
// end whenever it does; started says when each did, and inFlight counts their lines. When they were granted is not recorded: what
// is known is that their ticks were due before the end of the period, and turns looks at the order of the grants.
func ranInactive(lines []line, started map[string]time.Time, periods []activePeriod) (wrong []judge.Finding, inFlight int) {
	for _, l := range lines {
		at, known := started[l.run]
		own := func(r activePeriod) bool { return r.generation == l.label }
		switch {
		case slices.ContainsFunc(periods, func(r activePeriod) bool { return own(r) && r.holds(l.at) }):
		case known && slices.ContainsFunc(periods, func(r activePeriod) bool {
			return own(r) && !l.tick.After(r.to) && window{r.from, r.to.Add(underWay)}.holds(at)
		}):
			inFlight++
		default:
			wrong = append(wrong, judge.NewFinding(inactive, l.job, l.tick, "generation %s was not active: %s", l.label, l))
		}
	}
	return wrong, inFlight
}

// turns checks for each job that generations ran it in the order of the periods, one after another: in the order of the tokens,
// which is that of the grants.
func turns(all []job, lines []line, periods []activePeriod) []judge.Finding {
	var path []string
	for _, r := range periods {
		path = append(path, r.generation)
	}
	var wrong []judge.Finding
	for _, j := range all {
		own := slices.DeleteFunc(starts(lines), func(l line) bool { return l.job != j.name })
		slices.SortStableFunc(own, func(a, b line) int { return cmp.Compare(a.token, b.token) })
		wrong = append(wrong, follows(inactive, path, own, func(l line) string { return l.label })...)
	}
	return wrong
}

// idle are periods in which the generation ran nothing.
func idle(lines []line, periods []activePeriod) []judge.Finding {
	var wrong []judge.Finding
	for _, r := range periods {
		ran := false
		for _, l := range lines {
			ran = ran || l.label == r.generation && r.holds(l.at)
		}
		if !ran {
			wrong = append(wrong, judge.NewFinding(inactive, r.generation, time.Time{}, "it ran nothing from %s to %s, when it was active", stamp(r.from), stamp(r.to)))
		}
	}
	return wrong
}

// follows checks that what lines of a job tell goes along a path, never back, and to its end.
func follows(k judge.Kind, path []string, lines []line, what func(line) string) []judge.Finding {
	at := 0
	for _, l := range lines {
		i := slices.Index(path[at:], what(l))
		if i < 0 {
			return []judge.Finding{judge.NewFinding(k, l.job, l.tick, "%s, by what (%s) had given way to another (%s)", l, what(l), path[at])}
		}
		at += i
	}
	if len(lines) > 0 && path[at] != path[len(path)-1] {
		last := lines[len(lines)-1]
		return []judge.Finding{judge.NewFinding(k, last.job, last.tick, "%s is the last run, by %s; %s never came to count", last, path[at], path[len(path)-1])}
	}
	return nil
}
