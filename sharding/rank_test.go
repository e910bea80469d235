package sharding

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// slowRank ranks by counting, for each node, who beats it, with the formula turned
// round: the smallest -ln(u)/w goes first.
func slowRank(key string, nodes []Node) []Node {
	cost := func(n Node) float64 {
		h := xxhash.Sum64String(key + "\x00" + n.ID)
		u := (float64(h/4096) + 0.5) / 4503599627370496
		return math.Log(1/u) / float64(max(1, n.Weight))
	}
	out := make([]Node, len(nodes))
	for _, n := range nodes {
		before := 0
		for _, m := range nodes {
			if cost(m) < cost(n) || cost(m) == cost(n) && m.ID < n.ID {
				before++
			}
		}
		out[before] = n
	}
	return out
}

// drawNodes draws nodes with distinct IDs.
func drawNodes(t *rapid.T) []Node {
	ids := rapid.SliceOfNDistinct(rapid.StringN(1, 12, -1), 1, 12, rapid.ID[string]).Draw(t, "ids")
	nodes := make([]Node, len(ids))
	for i, id := range ids {
		nodes[i] = Node{ID: id, Weight: rapid.IntRange(-1, 9).Draw(t, "weight")}
	}
	return nodes
}

func ids(nodes []Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.ID
	}
	return out
}

// fixedNodes are n nodes of weight 1 called node-00, node-01, ...
func fixedNodes(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprintf("node-%02d", i)}
	}
	return nodes
}

// owned counts the keys job-0000, job-0001, ... that each node owns.
func owned(keys int, nodes []Node) map[string]int {
	count := map[string]int{}
	for i := range keys {
		n, _ := Owner(fmt.Sprintf("job-%04d", i), nodes)
		count[n.ID]++
	}
	return count
}

func TestRankAgainstSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, key := drawNodes(t), rapid.String().Draw(t, "key")
		got, want := Rank(key, nodes), slowRank(key, nodes)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("Rank(%q) = %q, slow twin %q", key, ids(got), ids(want))
		}
		if first, ok := Owner(key, nodes); !ok || !reflect.DeepEqual(first, got[0]) {
			t.Fatalf("Owner(%q) = %q, %v; Rank begins with %q", key, first.ID, ok, got[0].ID)
		}
	})
}

func TestRankDependsOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, key := drawNodes(t), rapid.String().Draw(t, "key")
		given := slices.Clone(nodes)
		first := Rank(key, nodes)
		if !reflect.DeepEqual(nodes, given) {
			t.Fatalf("Rank changed its argument: %q became %q", ids(given), ids(nodes))
		}
		shuffled := rapid.Permutation(nodes).Draw(t, "shuffled")
		if again := Rank(key, shuffled); !reflect.DeepEqual(again, first) {
			t.Fatalf("another order of the same nodes: %q, then %q", ids(first), ids(again))
		}
		for i := range shuffled {
			shuffled[i].Name = "other"
			shuffled[i].Draining = true
			shuffled[i].Set = "other"
		}
		if again := Rank(key, shuffled); !slices.Equal(ids(again), ids(first)) {
			t.Fatalf("names, sets and draining changed the order: %q, then %q", ids(first), ids(again))
		}
	})
}

// One node more or less leaves the order of the others as it is. So a joiner takes
// keys only for itself, and a leaver's keys go to whoever stood second.
func TestJoinAndLeaveMoveTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, key := drawNodes(t), rapid.String().Draw(t, "key")
		out := rapid.IntRange(0, len(nodes)-1).Draw(t, "out")
		rest := slices.Delete(slices.Clone(nodes), out, out+1)
		all := ids(Rank(key, nodes))
		want := slices.DeleteFunc(all, func(id string) bool { return id == nodes[out].ID })
		if got := ids(Rank(key, rest)); !slices.Equal(got, want) {
			t.Fatalf("without %q: %q, want %q", nodes[out].ID, got, want)
		}
	})
}

func TestMoreWeightOnlyMovesForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, key := drawNodes(t), rapid.String().Draw(t, "key")
		i := rapid.IntRange(0, len(nodes)-1).Draw(t, "raised")
		before := ids(Rank(key, nodes))
		nodes[i].Weight = max(nodes[i].Weight, 1) + rapid.IntRange(1, 9).Draw(t, "by")
		after := ids(Rank(key, nodes))
		if slices.Index(after, nodes[i].ID) > slices.Index(before, nodes[i].ID) {
			t.Fatalf("more weight moved %q back: %q, then %q", nodes[i].ID, before, after)
		}
		same := func(id string) bool { return id == nodes[i].ID }
		if !slices.Equal(slices.DeleteFunc(before, same), slices.DeleteFunc(after, same)) {
			t.Fatalf("the weight of %q changed the order of the others", nodes[i].ID)
		}
	})
}

// About 1/11 of the keys move when an eleventh node joins ten, and all to it.
func TestJoinMovesItsShare(t *testing.T) {
	const keys = 10000
	nodes := fixedNodes(11)
	moved := 0
	for i := range keys {
		key := fmt.Sprintf("job-%04d", i)
		before, _ := Owner(key, nodes[:10])
		after, _ := Owner(key, nodes)
		if before.ID != after.ID {
			moved++
			if after.ID != nodes[10].ID {
				t.Fatalf("%s moved from %s to %s, which did not join", key, before.ID, after.ID)
			}
		}
	}
	if share := float64(moved) / keys * 11; share < 0.9 || share > 1.1 {
		t.Errorf("%d of %d keys moved, %.2f of the fair share", moved, keys, share)
	}
}

// The busiest node's load over the average, at 1,000 jobs. True random numbers in
// place of the hash give means of 1.046, 1.084 and 1.156, and single sets of nodes
// lie widely around that. So the mean of 200 fixed sets is held to chance and 1 %,
// and each set to a bound.
func TestBalance(t *testing.T) {
	const keys, sets = 1000, 200
	tests := []struct {
		nodes       int
		mean, worst float64
	}{{3, 1.057, 1.2}, {5, 1.095, 1.3}, {10, 1.168, 1.5}}
	for _, tt := range tests {
		var sum, worst float64
		for set := range sets {
			nodes := fixedNodes(tt.nodes)
			for i := range nodes {
				nodes[i].ID = fmt.Sprintf("set-%03d/%s", set, nodes[i].ID)
			}
			busiest := slices.Max(slices.Collect(maps.Values(owned(keys, nodes))))
			ratio := float64(busiest*tt.nodes) / keys
			sum, worst = sum+ratio, max(worst, ratio)
		}
		t.Logf("%d nodes: busiest/average: mean %.3f, worst of %d sets %.3f", tt.nodes, sum/sets, sets, worst)
		if sum/sets > tt.mean || worst > tt.worst {
			t.Errorf("%d nodes: busiest/average: mean %.3f, worst %.3f; want at most %.2f and %.2f",
				tt.nodes, sum/sets, worst, tt.mean, tt.worst)
		}
	}
}

// Any IDs and keys spread: six standard deviations above the average are allowed,
// which chance does not reach.
func TestBalanceOfAnyIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keys = 2000
		nodes := drawNodes(t)
		for i := range nodes {
			nodes[i].Weight = 1
		}
		average := float64(keys) / float64(len(nodes))
		limit := average + 6*math.Sqrt(average) + 1
		prefix := rapid.String().Draw(t, "prefix")
		count := map[string]int{}
		for i := range keys {
			n, _ := Owner(fmt.Sprint(prefix, i), nodes)
			count[n.ID]++
			if float64(count[n.ID]) > limit {
				t.Fatalf("%q owns more than %.0f of %d keys of %d nodes", n.ID, limit, keys, len(nodes))
			}
		}
	})
}

func TestWeightsAreProportional(t *testing.T) {
	const keys = 30000
	nodes := fixedNodes(6)
	total := 0
	for i := range nodes {
		nodes[i].Weight = i // the first one's 0 counts as 1
		total += max(i, 1)
	}
	count := owned(keys, nodes)
	for _, n := range nodes {
		fair := float64(keys*max(n.Weight, 1)) / float64(total)
		if got := float64(count[n.ID]) / fair; got < 0.94 || got > 1.06 {
			t.Errorf("%s of weight %d owns %d keys, %.3f of its share", n.ID, n.Weight, count[n.ID], got)
		}
	}
}

// Nodes of different builds must agree, so the function may not change unnoticed.
// The winners were worked out outside this package from the formula in doc.go.
func TestOwnerIsFixed(t *testing.T) {
	nodes := []Node{{ID: "a"}, {ID: "b", Weight: 2}, {ID: "c", Weight: 3}}
	for key, want := range fixedOwners {
		if got := fmt.Sprint(ids(Rank(key, nodes))); got != want {
			t.Errorf("Rank(%q) = %s, want %s", key, got, want)
		}
	}
}

func TestEqualScoresGoByID(t *testing.T) {
	for _, tt := range []struct {
		score1 float64
		id1    string
		score2 float64
		id2    string
		want   int
	}{{2, "b", 1, "a", -1}, {1, "a", 2, "b", 1}, {1, "a", 1, "b", -1}, {1, "b", 1, "a", 1}, {1, "a", 1, "a", 0}} {
		if got := order(tt.score1, tt.id1, tt.score2, tt.id2); got != tt.want {
			t.Errorf("order(%v %s, %v %s) = %d, want %d", tt.score1, tt.id1, tt.score2, tt.id2, got, tt.want)
		}
	}
}

func TestScoreAtTheEdges(t *testing.T) {
	for _, h := range []uint64{0, 1, 1 << 12, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		for _, w := range []int{math.MinInt, -1, 0, 1, 2, math.MaxInt} {
			if s := score(h, w); !(s > 0) || math.IsInf(s, 0) {
				t.Errorf("score(%#x, %d) = %v, want a positive number", h, w, s)
			}
		}
	}
	if _, ok := Owner("job", nil); ok {
		t.Error("no nodes have an owner")
	}
	if got := Rank("job", nil); len(got) != 0 {
		t.Errorf("Rank of no nodes = %v", got)
	}
}

func TestOwnerAllocatesNothing(t *testing.T) {
	nodes := fixedNodes(10)
	if n := testing.AllocsPerRun(100, func() { Owner("settle-orders", nodes) }); n != 0 {
		t.Errorf("Owner allocates %v times, want 0", n)
	}
}

func BenchmarkOwner(b *testing.B) {
	for _, n := range []int{3, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nodes := fixedNodes(n)
			b.ReportAllocs()
			for b.Loop() {
				Owner("settle-orders", nodes)
			}
		})
	}
}

func BenchmarkRank(b *testing.B) {
	nodes := fixedNodes(10)
	b.ReportAllocs()
	for b.Loop() {
		Rank("settle-orders", nodes)
	}
}
