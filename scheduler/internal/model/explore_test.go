package model

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// explored explores each scenario once for the tests that look at the same result.
var explored = func() map[string]func() Result {
	once := make(map[string]func() Result)
	for _, sc := range Scenarios() {
		once[sc.Name] = sync.OnceValue(func() Result { return Explore(sc) })
	}
	return once
}()

// TestPromisesHoldInEveryState walks every scenario whole, with every guard on.
func TestPromisesHoldInEveryState(t *testing.T) {
	t.Parallel()
	for _, sc := range Scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			r := explored[sc.Name]()
			t.Logf("%s: %d states in %s", sc.Name, r.States, r.Took)
			if r.Capped {
				t.Errorf("more than %d states: not walked whole", r.States)
			}
			for _, v := range r.Violations {
				t.Errorf("%s is broken: %s\n%s", v.Promise, v.What, strings.Join(v.Trace, "\n"))
			}
		})
	}
}

// TestGoalStaysReachable: whatever has happened, all ticks can still get their answers.
func TestGoalStaysReachable(t *testing.T) {
	t.Parallel()
	for _, sc := range Scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			if r := explored[sc.Name](); r.Stuck > 0 {
				t.Errorf("%d of %d states are stuck; the nearest:\n%s", r.Stuck, r.States, strings.Join(r.StuckTrace, "\n"))
			}
		})
	}
}

// TestStuckStatesAreFound: without anybody who reaps, a crash while a run is going is the end.
func TestStuckStatesAreFound(t *testing.T) {
	t.Parallel()
	sc := scenario(t, "crash and rerun")
	sc.neverReap = true
	r := Explore(sc)
	if r.Stuck == 0 || r.Stuck == r.States {
		t.Fatalf("%d of %d states are stuck, want some", r.Stuck, r.States)
	}
	trace := strings.Join(r.StuckTrace, "\n")
	t.Logf("%d of %d states are stuck; the nearest:\n%s", r.Stuck, r.States, trace)
	if !strings.Contains(trace, "crashes") {
		t.Error("the nearest stuck state comes without a crash")
	}
}

// needs has for each guard a scenario in which its absence shows, and the promise that then breaks.
var needs = []struct {
	guard    Guard
	scenario string
	promise  Promise
}{
	{CursorCompare, "network", P1},
	{DigestCompare, "deploy", P2},
	{NotEarly, "clock a little", P2},
	{HeldNotSkipped, "network", P2},
	{SameAsker, "hand back", P1},
	{AttemptRule, "hand back", P1},
	{PinnedShards, "fewer shards", P7},
	{BegunWhole, "begun, then split", P7},
	{ClockInClaim, "network", P6},
	{ClockInReap, "clock", P4},
	{ClockInDefine, "deploy and clock", P2},
	{SteadyClock, "clock", P4},
	{BeatInReap, "clock swings", P4},
	{UntilInReap, "crash and rerun", P4},
	{OwnerInSettle, "pause and rerun", P4},
	{FreshIDInUnclaim, "hand back", P1},
	{DeadlineFromFirst, "network", P4},
	{DeadlineMargin, "clock a little", P4},
	{StartWhenDue, "claimed ahead", P1},
	{NoIsFinalLater, "network", P6},
	{CursorInDefine, "deploy", P2},
	{DigestInDefine, "three definitions", P2},
	{AfterNowInDefine, "deploy", P2},
	{AllDueInDefine, "deploy", P2},
	{AfterLastInDefine, "deploy and clock", P2},
	{TokenGuard, "failover", P3},
	{DigestInDefine, "same schedule", P2},
	{SameSchedule, "three definitions", P2},
}

// TestEveryGuardIsNeeded switches off one guard at a time: the promise that it is for must break.
func TestEveryGuardIsNeeded(t *testing.T) {
	t.Parallel()
	for _, g := range Guards() {
		if !slices.ContainsFunc(needs, func(n struct {
			guard    Guard
			scenario string
			promise  Promise
		}) bool {
			return n.guard == g
		}) {
			t.Errorf("nothing shows what the guard %q is for; add a line to the table", g)
		}
	}
	for _, need := range needs {
		t.Run(need.guard.String()+" in "+need.scenario, func(t *testing.T) {
			t.Parallel()
			sc := scenario(t, need.scenario)
			sc.Off = need.guard
			for _, p := range []Promise{P1, P2, P3, P4, P6, P7} {
				if p != need.promise {
					sc.Excused = append(sc.Excused, p)
				}
			}
			r := Explore(sc)
			if len(r.Violations) == 0 {
				t.Fatalf("without it %s still holds in all %d states of %q (capped: %v)", need.promise, r.States, sc.Name, r.Capped)
			}
			v := r.Violations[0]
			t.Logf("%q without it: %s is broken after %d states\n%s", sc.Name, v.Promise, r.States, strings.Join(v.Trace, "\n"))
			if i := slices.IndexFunc(v.Trace, func(line string) bool { return strings.HasSuffix(line, ". ") }); i >= 0 || len(v.Trace) == 0 {
				t.Errorf("step %d of the trace has no words", i+1)
			}
		})
	}
}

func scenario(t *testing.T, name string) Scenario {
	t.Helper()
	all := Scenarios()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no scenario %q", name)
	}
	return all[i]
}
