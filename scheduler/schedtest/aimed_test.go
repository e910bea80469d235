package schedtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// aim is a plan that is aimed at one fault, with the conditions that must hold beside the promises.
// The judge excuses a good deal near a fault. In a plan with a single fault the tick that may be
// lost is known, and `also` checks that no other tick was.
type aim struct {
	name string
	plan func(seed uint64) Plan
	also func(r Result) []string // nil: nothing
}

// moreSeeds is how many seeds of a plan are played, where one seed may miss the aim. Seeds differ
// in the latencies of messages.
var moreSeeds = map[string]uint64{"old grant": 3, "step forward": 2, "dead owner, backlog": 2}

// TestAimed plays plans aimed at the guards of the protocol: each fails without its guard.
func TestAimed(t *testing.T) {
	for _, a := range aims() {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= max(1, moreSeeds[a.name]); seed++ {
				a.play(t, seed)
			}
		})
	}
}

func (a aim) play(t *testing.T, seed uint64) {
	t.Helper()
	r := Play(t, a.plan(seed))
	var wrong []string
	for _, f := range r.Findings {
		wrong = append(wrong, fmt.Sprint(f))
	}
	if a.also != nil {
		wrong = append(wrong, a.also(r)...)
	}
	if len(wrong) > 0 {
		t.Errorf("seed %d: %s\n%s", seed, strings.Join(wrong, "\n"), r)
	}
}

// allStarted expects every granted tick to be run.
func allStarted(r Result) []string {
	return wanted("granted and never run", r.Verdicts["unstarted"] == 0)
}

// failsOver expects every tick to start in time, whichever node has died (P6).
func failsOver(r Result) []string {
	return wanted("a tick waited longer than P6 allows", r.Verdicts["delayed"]+r.Verdicts["missed"]+r.Verdicts["vanished"] == 0)
}

// noneRefused expects the guard at the sink to refuse no write.
func noneRefused(r Result) []string {
	return wanted("a guard refused a run that nobody had overtaken", r.Stale == 0)
}

func wanted(wrong string, ok bool) []string {
	if ok {
		return nil
	}
	return []string{wrong}
}

// noneReaped expects no run to be reaped: its node lives and renews its lease.
func noneReaped(r Result) (wrong []string) {
	for _, line := range r.Story {
		asked, answer, found := strings.Cut(line, " -> ")
		if found && strings.Contains(asked, " reap ") && strings.Contains(answer, "reaped") {
			wrong = append(wrong, "reaped though its node lives: "+line)
		}
	}
	return wrong
}

// punctual expects most ticks to start within the time of a few messages.
func punctual(r Result) []string {
	late, all := 0, 0
	for _, w := range r.Writes {
		if w.Phase == "start" {
			if all++; w.At.Sub(w.Tick) > 150*time.Millisecond {
				late++
			}
		}
	}
	return wanted(fmt.Sprint("late: ", late, " of ", all), 2*late < all)
}

// inOrder expects the ticks that are too late to run in order not to run as if on time.
func inOrder(r Result) (wrong []string) {
	for _, w := range r.Writes {
		if w.Phase == "start" && w.Trigger == "schedule" && w.At.Sub(w.Tick) > 11*time.Second {
			wrong = append(wrong, "too late to run in its order: "+w.String())
		}
	}
	return wrong
}

// byTrueTime expects no tick to run that lies far ahead of the true time, and ticks to run again in
// the end.
func byTrueTime(r Result) (wrong []string) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every simulation
	for _, w := range r.Writes {
		if w.Phase == "start" && w.Tick.Sub(begin) > time.Minute {
			wrong = append(wrong, "far from due: "+w.String())
		}
	}
	last := 0.0
	for _, e := range storyOf(r) {
		if strings.Contains(e.text, "start of ") {
			last = e.at
		}
	}
	return append(wrong, wanted(fmt.Sprint("the last run started at ", last, " s"), last >= 30)...)
}

// replacedOnce expects the definition to be replaced once, and afterwards only the replacing node
// to run the job.
func replacedOnce(r Result) (wrong []string) {
	at, by := 0.0, ""
	for _, e := range storyOf(r) {
		switch replaced := strings.Contains(e.text, " define ") && strings.HasSuffix(e.text, "replaced"); {
		case replaced && by == "":
			at, by = e.at, e.who
		case replaced:
			wrong = append(wrong, "replaced again: "+e.text)
		case by != "" && e.who != by && e.at > at+0.2 && strings.Contains(e.text, "start of "):
			wrong = append(wrong, "run by a node with the older definition: "+e.text)
		}
	}
	return wrong
}

// startsNothing expects node a to start nothing from the end of its handover, a second here, until
// it ends.
func startsNothing(r Result) (wrong []string) {
	const never = 1e9
	over := never
	for _, e := range storyOf(r) {
		switch {
		case e.who != "a":
		case strings.Contains(e.text, "FAULT drain"):
			over = e.at + 1.5
		case strings.HasSuffix(e.text, "has ended"):
			over = never
		case e.at > over && strings.Contains(e.text, "start of "):
			wrong = append(wrong, "started by a node that has handed over: "+e.text)
		}
	}
	return wrong
}

// told is one line of a story: the time in seconds, the node, the text.
type told struct {
	at        float64
	who, text string
}

func storyOf(r Result) (all []told) {
	for _, line := range r.Story {
		e := told{text: line}
		if n, _ := fmt.Sscan(line, &e.at, &e.who); n == 2 {
			all = append(all, e)
		}
	}
	return all
}
