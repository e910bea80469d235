//go:build mutants

package schedtest_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// What an aimed plan must show beside the promises. The verifier excuses a good deal near a fault; where a plan
// has one fault only, it is known which tick it may cost, and these say that it cost no other.
const (
	unstarted verify.Kind = "UNSTARTED" // a tick was granted and never run
	reaped    verify.Kind = "REAPED"    // a run was reaped whose node lived and could renew
	failover  verify.Kind = "FAILOVER"  // a tick of a dead node waited longer than promise P6 says
	flapping  verify.Kind = "FLAPPING"  // an older definition came back beside the newer one
	drained   verify.Kind = "DRAINED"   // a node started a run after it had handed over
	ahead     verify.Kind = "AHEAD"     // a tick ran that is far from due by the true time
	older     verify.Kind = "OLDER"     // a node ran a tick of a definition that had been replaced
	tooLate   verify.Kind = "TOOLATE"   // a tick ran in its order that the catch-up policy had to pass over
	stood     verify.Kind = "STOOD"     // nothing ran any more though all was mended
	slow      verify.Kind = "SLOW"      // ticks wait for the grace though their owner lives
	refused   verify.Kind = "REFUSED"   // a guard refused the write of a run that nobody had overtaken
)

// every finds each tick with one of these verdicts.
func every(kind verify.Kind, bad ...verify.Verdict) func(schedtest.Result) []verify.Finding {
	return func(r schedtest.Result) (all []verify.Finding) {
		for _, v := range bad {
			for range r.Verdicts[v] {
				all = append(all, verify.Finding{Kind: kind, What: "a tick is " + string(v)})
			}
		}
		return all
	}
}

// lines are the lines of the story about requests of this name that were answered with this word.
func lines(r schedtest.Result, op, word string) (all []string) {
	for _, line := range r.Story {
		asked, answer, found := strings.Cut(line, " -> ")
		if found && strings.Contains(asked, " "+op+" ") && strings.Contains(answer, word) {
			all = append(all, line)
		}
	}
	return all
}

// told finds each such line.
func told(kind verify.Kind, op, word string) func(schedtest.Result) []verify.Finding {
	return func(r schedtest.Result) (all []verify.Finding) {
		for _, line := range lines(r, op, word) {
			all = append(all, verify.Finding{Kind: kind, What: line})
		}
		return all
	}
}

// slowly finds that most ticks started later than a few messages take.
func slowly(r schedtest.Result) []verify.Finding {
	late, all := 0, 0
	for _, w := range r.Writes {
		if w.Phase == verify.Start {
			if all++; w.At.Sub(w.Tick) > 150*time.Millisecond {
				late++
			}
		}
	}
	if 2*late < all {
		return nil
	}
	return []verify.Finding{{Kind: slow, What: fmt.Sprint(late, " of ", all)}}
}

// afterStep finds ticks that ran more than a minute before the simulation came to them, and that nothing ran in
// the end.
func afterStep(r schedtest.Result) (all []verify.Finding) {
	last := ""
	for _, w := range r.Writes {
		if w.Phase == verify.Start && w.Tick.Sub(start) > time.Minute {
			all = append(all, verify.Finding{Kind: ahead, Job: w.Job, Tick: w.Tick, What: w.String()})
		}
	}
	for _, line := range r.Story {
		if strings.Contains(line, "start of ") {
			last = line
		}
	}
	var at float64
	if _, err := fmt.Sscan(last, &at); err != nil || at < 30 {
		all = append(all, verify.Finding{Kind: stood, What: "the last start: " + last})
	}
	return all
}

// stale finds that anything was refused.
func stale(r schedtest.Result) []verify.Finding {
	if r.Stale == 0 {
		return nil
	}
	return []verify.Finding{{Kind: refused, What: fmt.Sprint(r.Stale, " writes")}}
}

// outOfOrder finds ticks that ran as if they were not late.
func outOfOrder(r schedtest.Result) (all []verify.Finding) {
	for _, w := range r.Writes {
		if w.Phase == verify.Start && w.Trigger == "schedule" && w.At.Sub(w.Tick) > 11*second {
			all = append(all, verify.Finding{Kind: tooLate, Job: w.Job, Tick: w.Tick, What: w.String()})
		}
	}
	return all
}

// afterReplacing finds a second replacement of a definition, and starts on other nodes after the first.
func afterReplacing(r schedtest.Result) (all []verify.Finding) {
	var at float64
	by := ""
	for _, line := range r.Story {
		var now float64
		var who string
		_, _ = fmt.Sscan(line, &now, &who)
		switch replaced := strings.Contains(line, " define ") && strings.HasSuffix(line, "replaced"); {
		case replaced && by == "":
			at, by = now, who
		case replaced:
			all = append(all, verify.Finding{Kind: flapping, What: line})
		case by != "" && who != by && now > at+0.2 && strings.Contains(line, "start of "):
			all = append(all, verify.Finding{Kind: older, What: line})
		}
	}
	return all
}

// afterDrain finds runs that node a starts when the time is over in which it hands over, a second here, and before it ends.
func afterDrain(r schedtest.Result) (all []verify.Finding) {
	const never = 1e9
	over := never
	for _, line := range r.Story {
		var now float64
		_, _ = fmt.Sscan(line, &now)
		switch who := strings.Fields(line); {
		case len(who) < 3 || who[1] != "a":
		case strings.Contains(line, "FAULT drain"):
			over = now + 1.5
		case strings.HasSuffix(line, "has ended"):
			over = never
		case now > over && strings.Contains(line, "start of "):
			all = append(all, verify.Finding{Kind: drained, What: line})
		}
	}
	return all
}
