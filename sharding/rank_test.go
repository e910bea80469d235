package sharding

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// slowRank ranks by counting, for each node, the nodes that beat it, with the formula turned round:
// the smallest -ln(u)/w goes first.
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
		given := slices.Clone(nodes)
		got, want := Rank(key, nodes), slowRank(key, nodes)
		if !reflect.DeepEqual(nodes, given) {
			t.Fatalf("Rank changed its argument: %q became %q", ids(given), ids(nodes))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("Rank(%q) = %q, slow twin %q", key, ids(got), ids(want))
		}
		if first, ok := Owner(key, nodes); !ok || !reflect.DeepEqual(first, got[0]) {
			t.Fatalf("Owner(%q) = %q, %v; Rank begins with %q", key, first.ID, ok, got[0].ID)
		}
		shuffled := rapid.Permutation(nodes).Draw(t, "shuffled")
		for i := range shuffled {
			shuffled[i].Name, shuffled[i].Set, shuffled[i].Draining = "other", "other", true
		}
		if again := Rank(key, shuffled); !slices.Equal(ids(again), ids(got)) {
			t.Fatalf("names, sets, draining and the order given change %q to %q", ids(got), ids(again))
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
	for key, want := range map[string]string{
		"":              "[c b a]",
		"job":           "[b c a]",
		"report":        "[c a b]",
		"settle-orders": "[b c a]",
		"mail/digest":   "[c b a]",
		"a-rather-long-name-of-a-job-to-fill-more-than-one-stripe": "[c b a]",
		"größe": "[c b a]",
		"job#0": "[b a c]",
		"job#1": "[c a b]",
		"job#2": "[a b c]",
	} {
		if got := fmt.Sprint(ids(Rank(key, nodes))); got != want {
			t.Errorf("Rank(%q) = %s, want %s", key, got, want)
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
