package explore

import (
	"strings"
	"testing"
)

// TestChecksCanFail breaks by hand what no single guard's absence breaks first.
func TestChecksCanFail(t *testing.T) {
	t.Parallel()
	for want, plant := range map[string]func(*world, *State, *Ledger){
		"attempt 2 was granted before attempt 1": func(w *world, s *State, _ *Ledger) {
			w.grant(s, Command{Tick: 1, Run: 1, Node: nobody}, 2)
		},
		"does not close: a row begins at 2, and the cursor stood at 1": func(w *world, _ *State, l *Ledger) {
			w.checkStep(l, 2, 1, 1)
		},
		"tick 1 has two answers": func(w *world, s *State, l *Ledger) {
			w.account(s, l, 1, NotRun)
			w.account(s, l, 1, Open)
		},
		"tick 3 was recorded as not run before it was due": func(w *world, s *State, l *Ledger) {
			w.account(s, l, 3, NotRun)
		},
		"set back to 1, and tick 1 has an answer": func(w *world, s *State, l *Ledger) {
			w.account(s, l, 1, NotRun)
			w.checkBack(s, l, 1)
		},
		"closed with shard 1 not ended": func(w *world, _ *State, l *Ledger) {
			l.Tick, l.Opened, l.Count = 1, 2, 1
			l.Shards = [2]Shard{{Phase: Done}, {Phase: Leased}}
			w.closeTick(l)
		},
		"both nodes execute the same run": func(w *world, s *State, _ *Ledger) {
			s.Nodes[0] = Node{Phase: Executing, Run: 1}
			s.Nodes[1] = Node{Phase: Executing, Run: 1}
			w.checkTwins(s)
		},
		"while node 1 is in the function for tick 1": func(w *world, s *State, _ *Ledger) {
			s.Nodes[1] = Node{Phase: Executing, Run: 1, Tick: 1, Deadline: 1}
			w.grant(s, Command{Tick: 2, Run: 2, Node: nobody}, 1)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(scenario(t, "network"))
			s := w.initial()
			s.Now, s.Highest = 1, 1
			plant(w, &s, &s.Ledgers[0])
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
	s.Now, s.Ledgers[0].Count, s.Ledgers[0].Opened = 1, 2, 2
	s.Nodes[0] = Node{Phase: Executing, Run: 1, Tick: 1, Shard: 0, Deadline: 2}
	w.grant(&s, Command{Tick: 1, Shard: 1, Run: 2, Node: nobody}, 1)
	s.Nodes[0].Power = Paused
	w.grant(&s, Command{Tick: 1, Shard: 0, Run: 3, Node: nobody}, 1)
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
