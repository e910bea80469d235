package failover

import (
	"fmt"
	"testing"
)

// Each state, with what follows from each event: the machine in the package comment.
func TestStates(t *testing.T) {
	t.Parallel()
	in := map[State]func(e *Epoch){
		Unknown:   func(*Epoch) {},
		Asserting: func(e *Epoch) { e.Notice("a") },
		Restoring: func(e *Epoch) { e.Notice("a"); e.Asserted() },
		Waiting:   func(e *Epoch) { e.Join("a") },
		Open:      func(e *Epoch) { e.Join("a"); e.Open() },
	}
	events := []struct {
		name string
		do   func(e *Epoch)
		then map[State]State // unchanged where it has none
	}{
		{"the same id", func(e *Epoch) { e.Notice(e.ID()) }, nil},
		{"another id", func(e *Epoch) { e.Notice("b") }, map[State]State{Unknown: Asserting, Restoring: Asserting, Waiting: Asserting, Open: Asserting}},
		{"asserted", (*Epoch).Asserted, map[State]State{Asserting: Restoring}},
		{"restored", (*Epoch).Restored, map[State]State{Asserting: Waiting, Restoring: Waiting}},
		{"open", (*Epoch).Open, map[State]State{Asserting: Open, Restoring: Open, Waiting: Open}},
		{"another master, then open", func(e *Epoch) { e.Leave(); e.Asserted(); e.Restored(); e.Open() },
			map[State]State{Unknown: Asserting, Restoring: Asserting, Waiting: Asserting, Open: Asserting}},
		{"another master", (*Epoch).Leave, map[State]State{Unknown: Asserting, Restoring: Asserting, Waiting: Asserting, Open: Asserting}},
		{"repeat", (*Epoch).Repeat, map[State]State{Restoring: Asserting}},
		{"answered", func(e *Epoch) { e.Answered("a", 7) }, nil},
	}
	for state, begin := range in {
		for _, x := range events {
			t.Run(fmt.Sprint(state, ", ", x.name), func(t *testing.T) {
				var e Epoch
				begin(&e)
				if e.State() != state {
					t.Fatalf("it begins in %v", e.State())
				}
				x.do(&e)
				want, changes := x.then[state]
				if !changes {
					want = state
				}
				if e.State() != want {
					t.Errorf("%v, want %v", e.State(), want)
				}
			})
		}
	}
}

// An epoch that comes back under its old id, as after a split, is a new one: grants of the time between are not stored there.
func TestBackIsNew(t *testing.T) {
	t.Parallel()
	var e Epoch
	e.Join("a")
	e.Open()
	e.Notice("b")
	if !e.Notice("a") || e.State() != Asserting {
		t.Errorf("the old id again: %v", e.State())
	}
	if e.Was() != "a" {
		t.Errorf("it claimed last in %q", e.Was())
	}
}

// Only answers of an open epoch show when the node last learned of grants to other nodes.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	var e Epoch
	e.Join("a")
	e.Answered("a", 1)
	e.Open()
	e.Answered("b", 2)
	if e.LastAnswer() != 0 {
		t.Errorf("last answer at %d, though no open epoch has answered", e.LastAnswer())
	}
	e.Answered("a", 3)
	e.Notice("b")
	e.Answered("b", 4)
	if e.LastAnswer() != 3 {
		t.Errorf("last answer at %d, want 3", e.LastAnswer())
	}
}
