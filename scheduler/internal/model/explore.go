package model

import (
	"hash/maphash"
	"slices"
	"time"
)

// graph holds the states found so far, in the order of their discovery, which is the order of
// their distance from the beginning.
type graph struct {
	states []State
	parent []uint32
	number map[uint64]uint32 // by hash; where two states have the same, the later one is under the next number
	seed   maphash.Seed
	edges  []uint32 // the states that follow; from first[i] on they follow states[i]
	first  []uint32
}

// Explore walks every reachable state of a scenario, breadth first, until a promise breaks. When
// none does, it also looks, backwards, for states from which the goal cannot be reached.
func Explore(sc Scenario) Result {
	began := time.Now()
	w := newWorld(sc)
	g := &graph{number: make(map[uint64]uint32), seed: maphash.MakeSeed()}
	s := w.initial()
	w.canonical(&s)
	g.add(s, 0)
	var r Result
	for i := 0; i < len(g.states) && r.Violations == nil; i++ {
		if len(g.states) > w.Most {
			r.Capped = true
			break
		}
		w.visit(g, uint32(i), &r)
	}
	r.States = len(g.states)
	if r.Violations == nil && !r.Capped {
		w.findStuck(g, &r)
	}
	r.Took = time.Since(began)
	return r
}

// add gives a state its number, the same one when it is known.
func (g *graph) add(s State, parent uint32) uint32 {
	hash := maphash.Comparable(g.seed, s)
	n, known := g.number[hash]
	for ; known && g.states[n] != s; n, known = g.number[hash] {
		hash++
	}
	if !known {
		n = uint32(len(g.states))
		g.number[hash] = n
		g.states = append(g.states, s)
		g.parent = append(g.parent, parent)
	}
	return n
}

// visit takes all steps from one state.
func (w *world) visit(g *graph, i uint32, r *Result) {
	g.first = append(g.first, uint32(len(g.edges)))
	w.steps = func(_ Event, next State) {
		if w.broken != nil {
			if r.Violations == nil {
				r.Violations = []Violation{w.describe(g, i, w.broken.Promise)}
			}
			return
		}
		w.canonical(&next)
		if j := g.add(next, i); j != i {
			g.edges = append(g.edges, j)
		}
	}
	w.expand(g.states[i])
}

// describe puts a broken promise into words: the way to the state, and the step from it.
func (w *world) describe(g *graph, i uint32, p Promise) Violation {
	lines, s := w.trace(g, i)
	var v Violation
	again := newWorld(w.Scenario)
	again.steps = func(e Event, _ State) {
		if again.broken != nil && again.broken.Promise == p && v.Promise == "" {
			v = *again.broken
			v.Trace = numbered(append(lines, e.String(), string(p)+" is broken: "+v.What))
		}
	}
	again.expand(s)
	return v
}

// trace is the way to a state, in words, and the state in which nodes and runs kept the names that
// they have in those words: the steps are taken once more, and those are named that lead on.
func (w *world) trace(g *graph, i uint32) ([]string, State) {
	path := []uint32{i}
	for ; i != 0; i = g.parent[i] {
		path = append(path, g.parent[i])
	}
	slices.Reverse(path)
	var lines []string
	s := w.initial()
	again := newWorld(w.Scenario)
	for k := 0; k+1 < len(path); k++ {
		line, then := "", s
		again.steps = func(e Event, next State) {
			again.tidy(&next)
			other := next
			again.canonical(&other)
			if line == "" && again.broken == nil && other == g.states[path[k+1]] {
				line, then = e.String(), next
			}
		}
		again.expand(s)
		lines, s = append(lines, line), then
	}
	return lines, s
}

// findStuck walks back from every state that has reached the goal.
func (w *world) findStuck(g *graph, r *Result) {
	g.first = append(g.first, uint32(len(g.edges)))
	before, at := g.reversed()
	able := make([]bool, len(g.states))
	var queue []uint32
	for i := range g.states {
		if reached(&g.states[i]) {
			able[i] = true
			queue = append(queue, uint32(i))
		}
	}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range before[at[i]:at[i+1]] {
			if !able[p] {
				able[p] = true
				queue = append(queue, p)
			}
		}
	}
	for i, ok := range able {
		if !ok {
			if r.Stuck == 0 {
				lines, _ := w.trace(g, uint32(i))
				r.StuckTrace = numbered(lines)
			}
			r.Stuck++
		}
	}
}

// reversed is the edges the other way round: those into state i stand from at[i] to at[i+1].
func (g *graph) reversed() (before, at []uint32) {
	n := len(g.states)
	at = make([]uint32, n+1)
	for _, j := range g.edges {
		at[j+1]++
	}
	for i := range n {
		at[i+1] += at[i]
	}
	before = make([]uint32, len(g.edges))
	next := slices.Clone(at)
	for i := range n {
		for _, j := range g.edges[g.first[i]:g.first[i+1]] {
			before[next[j]] = uint32(i)
			next[j]++
		}
	}
	return before, at
}
