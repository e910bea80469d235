//go:build !race

package sharding

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// assignSeed makes the random sets of nodes below.
const assignSeed = 2026

// randomNodes are n nodes with ids like those of processes, weights from 1 to most.
func randomNodes(r *rand.Rand, n, most int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprintf("%016x-%016x", r.Uint64(), r.Uint64()), Weight: 1 + r.IntN(most)}
	}
	return nodes
}

func jobKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("job-%04d", i)
	}
	return keys
}

// share is a node's part of so many keys.
func share(keys int, n Node, nodes []Node) float64 {
	total := 0
	for _, m := range nodes {
		total += m.Weight
	}
	return float64(keys) * float64(n.Weight) / float64(total)
}

// moved counts the keys that change their node.
func moved(keys []string, before, after []Node) int {
	from, to := Assign(keys, before), Assign(keys, after)
	n := 0
	for i := range keys {
		if before[from[i]].ID != after[to[i]].ID {
			n++
		}
	}
	return n
}

// tally is a mean and the worst of many figures.
type tally struct{ sum, worst, n float64 }

func (c *tally) add(x float64) { c.sum, c.worst, c.n = c.sum+x, max(c.worst, x), c.n+1 }

func (c *tally) mean() float64 { return c.sum / c.n }

func (c *tally) String() string { return fmt.Sprintf("mean %.3f, worst %.3f", c.mean(), c.worst) }

// A node's keys over its share, for the fullest of ten nodes, at 1,000 jobs. A light node's bound is
// rounded up by up to one key, so it is held to 1.15 and that key.
func TestAssignBalance(t *testing.T) {
	t.Logf("seed %d", assignSeed)
	r, keys := rand.New(rand.NewPCG(assignSeed, 1)), jobKeys(1000)
	for _, most := range []int{1, 5} {
		var plain, bound tally
		for range 300 {
			nodes := randomNodes(r, 10, most)
			count := make([]float64, len(nodes))
			for _, n := range Assign(keys, nodes) {
				count[n]++
			}
			owned := owned(len(keys), nodes)
			var fullest, without float64
			for i, n := range nodes {
				fair := share(len(keys), n, nodes)
				fullest, without = max(fullest, count[i]/fair), max(without, float64(owned[n.ID])/fair)
				if limit := 1.15 * fair; most == 1 && count[i] > limit+1e-9 || count[i] >= limit+1 {
					t.Fatalf("%q of weight %d has %.0f keys, its share is %.1f", n.ID, n.Weight, count[i], fair)
				}
			}
			bound.add(fullest)
			plain.add(without)
		}
		t.Logf("weights 1 to %d: fullest/share: %s; by hashing alone: %s", most, &bound, &plain)
		if plain.worst < 1.2 {
			t.Errorf("hashing alone is at most %.3f: these sets of nodes prove nothing", plain.worst)
		}
	}
}

// Keys that move, over those that have to: the joiner's share, the leaver's, or what a weight adds. Part
// of the spread is that a node's own keys are more or fewer than its share.
func TestAssignMovesLittle(t *testing.T) {
	t.Logf("seed %d", assignSeed)
	const mean, worst = 1.1, 1.5
	r, keys := rand.New(rand.NewPCG(assignSeed, 2)), jobKeys(1000)
	for _, most := range []int{1, 5} {
		var join, leave, weight tally
		for range 200 {
			nodes := randomNodes(r, 11, most)
			ten := nodes[:10]
			join.add(float64(moved(keys, ten, nodes)) / share(len(keys), nodes[10], nodes))
			leave.add(float64(moved(keys, nodes, nodes[1:])) / share(len(keys), nodes[0], nodes))
			heavier := slices.Clone(ten)
			heavier[0].Weight *= 2
			weight.add(float64(moved(keys, ten, heavier)) / (share(len(keys), heavier[0], heavier) - share(len(keys), ten[0], ten)))
		}
		for _, c := range []struct {
			what string
			*tally
		}{{"a node joins", &join}, {"a node leaves", &leave}, {"a weight doubles", &weight}} {
			t.Logf("weights 1 to %d, %s: moved/ideal: %s", most, c.what, c)
			if c.mean() > mean || c.worst > worst {
				t.Errorf("weights 1 to %d, %s: moved/ideal: %s; want at most %v and %v", most, c.what, c, mean, worst)
			}
		}
	}
}

// A job that comes or goes is next to nothing to the others: a deploy must not shuffle them.
func TestAssignOneKeyMore(t *testing.T) {
	t.Logf("seed %d", assignSeed)
	r, keys := rand.New(rand.NewPCG(assignSeed, 3)), jobKeys(1000)
	var others tally
	for range 300 {
		nodes := randomNodes(r, 10, 1)
		out := r.IntN(len(keys))
		fewer := slices.Delete(slices.Clone(keys), out, out+1)
		with := slices.Delete(Assign(keys, nodes), out, out+1)
		n := 0
		for i, node := range Assign(fewer, nodes) {
			if node != with[i] {
				n++
			}
		}
		others.add(float64(n))
	}
	t.Logf("one key more moves of 1,000 others: %s", &others)
	if others.mean() > 0.3 || others.worst > 10 {
		t.Errorf("one key more moves of 1,000 others: %s; want at most 0.3 and 10", &others)
	}
}
