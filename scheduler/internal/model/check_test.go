package model

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// TestChecksCanFail breaks by hand what no single guard's absence breaks first.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	second := &run{Run: ledger.Run{Tick: instant(1), Shard: 1, Attempt: 2}}
	for want, plant := range map[string]func(*world, *State, *Record){
		"attempt 2 was granted before attempt 1": func(w *world, s *State, _ *Record) {
			w.checkGrant(s, Command{Node: nobody}, second)
		},
		"does not close: a row begins at 2, and the cursor stood at 1": func(w *world, _ *State, _ *Record) {
			w.checkLink(1, instant(2), instant(3))
		},
		"does not close: the last row leads to 1, and the cursor stands at 2": func(w *world, s *State, _ *Record) {
			w.job.Cursor = instant(2)
			w.check(s, Command{}, NoAnswer)
		},
		"tick 1 has two answers": func(w *world, s *State, l *Record) {
			w.account(s, l, 1, NotRun)
			w.account(s, l, 1, Open)
		},
		"tick 3 was recorded as not run before it was due": func(w *world, s *State, l *Record) {
			w.account(s, l, 3, NotRun)
		},
		"set back to 1, and tick 1 has an answer": func(w *world, s *State, l *Record) {
			w.account(s, l, 1, NotRun)
			w.checkBack(s, l, 0, 1)
		},
		"closed with shard 1 not ended": func(w *world, _ *State, l *Record) {
			w.job.runs = []*run{second}
			w.checkClosed(l, 1)
		},
		"both nodes execute the same run": func(w *world, s *State, _ *Record) {
			s.Nodes[0] = Node{Phase: Executing, Run: 1}
			s.Nodes[1] = Node{Phase: Executing, Run: 1}
			w.checkTwins(s)
		},
		"while node 1 is in the function for tick 1": func(w *world, s *State, _ *Record) {
			s.Nodes[1] = Node{Phase: Executing, Run: 1, Tick: 1, Deadline: 1}
			w.checkAlone(s, Command{Run: 2}, 2, 0)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(scenario(t, "network"))
			s := w.initial()
			s.Now, s.Highest = 1, 1
			plant(w, &s, &s.Records[0])
			if w.broken == nil || !strings.Contains(w.broken.What, want) {
				t.Errorf("found %+v, want %q", w.broken, want)
			}
		})
	}
}

// TestGrantsThatKeepThePromises: two shards of one tick may run at once, and a paused node does
// not run at all.
func TestGrantsThatKeepThePromises(t *testing.T) {
	t.Parallel()
	w := newWorld(scenario(t, "shards"))
	s := w.initial()
	s.Now, s.Records[0].Opened, w.job.Token = 1, 2, 1
	s.Nodes[0] = Node{Phase: Executing, Run: 1, Tick: 1, Shard: 0, Deadline: 2}
	w.checkGrant(&s, Command{Run: 2, Node: nobody}, &run{Run: ledger.Run{Tick: instant(1), Shard: 1, Shards: 2, Attempt: 1}})
	s.Nodes[0].Power, w.job.Token = Paused, 2
	w.checkGrant(&s, Command{Run: 3, Node: nobody}, &run{Run: ledger.Run{Tick: instant(1), Shard: 0, Shards: 2, Attempt: 1}})
	if w.broken != nil {
		t.Errorf("found %+v, want nothing", w.broken)
	}
}

// TestRenamingLosesNothing explores with every name kept, and finds the same states once they are
// named anew.
func TestRenamingLosesNothing(t *testing.T) {
	t.Parallel()
	sc := Scenario{Schedules: same(At(1, 2)), Attempts: 2, Faults: 1, Network: true, Crashes: true, Pauses: true}
	w := newWorld(sc)
	first := w.initial()
	w.tidy(&first)
	seen := map[State]bool{first: true}
	queue := []State{first}
	w.steps = func(_ Event, next State) {
		w.tidy(&next)
		if !seen[next] {
			seen[next] = true
			queue = append(queue, next)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		w.expand(s)
	}
	named := make(map[State]bool)
	for s := range seen {
		w.canonical(&s)
		named[s] = true
	}
	r := Explore(sc)
	t.Logf("%d states with names, %d without", len(seen), r.States)
	if len(named) != r.States || len(seen) <= r.States {
		t.Errorf("%d states with names, %d of them different without; Explore found %d", len(seen), len(named), r.States)
	}
}
