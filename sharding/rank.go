package sharding

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Node is one process in the view of assignment.
type Node struct {
	// ID names the process and is unique among the nodes of one call.
	ID string `json:"id"`
	// Name is for people; it plays no part in assignment.
	Name string `json:"name,omitempty"`
	// Weight is the node's share relative to other nodes. 0 and less count as 1.
	Weight int `json:"weight,omitempty"`
	// Labels are matched against a job's labels, see Matches.
	Labels map[string]string `json:"labels,omitempty"`
	// Set names the node's set of jobs; it plays no part in assignment.
	Set string `json:"set,omitempty"`
	// Draining means that the node takes no new work. This package ignores it.
	Draining bool `json:"draining,omitempty"`
}

// Rank returns the nodes in the order in which they go for the key, the owner
// first. The result is a new slice. It depends on the key and on the nodes' IDs
// and weights alone, not on their order; equal scores are ordered by ID.
func Rank(key string, nodes []Node) []Node {
	var space [hashSpace]byte
	start := prefix(key, space[:0])
	all := make([]scored, len(nodes))
	for i, n := range nodes {
		all[i] = scored{n, score(hash(start, n.ID), n.Weight)}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		return order(a.score, a.node.ID, b.score, b.node.ID)
	})
	ranked := make([]Node, len(all))
	for i, s := range all {
		ranked[i] = s.node
	}
	return ranked
}

// Owner returns the first node of Rank without ranking the rest, and false when there are no nodes.
// It costs one hash and one logarithm a node.
func Owner(key string, nodes []Node) (Node, bool) {
	if len(nodes) == 0 {
		return Node{}, false
	}
	var space [hashSpace]byte
	best, _ := first(prefix(key, space[:0]), nodes, nil)
	return nodes[best], true
}

// first returns the index and the score of the first node for a prefixed key, among the nodes that
// have room. A nil room is room everywhere; there must be some.
func first(key []byte, nodes []Node, room []int) (int, float64) {
	best, top := 0, math.Inf(-1)
	for i := range nodes {
		if room != nil && room[i] <= 0 {
			continue
		}
		s := score(hash(key, nodes[i].ID), nodes[i].Weight)
		if order(s, nodes[i].ID, top, nodes[best].ID) < 0 {
			best, top = i, s
		}
	}
	return best, top
}

type scored struct {
	node  Node
	score float64
}

// order is negative when a node with the first score and ID goes before one with
// the second.
func order(score1 float64, id1 string, score2 float64, id2 string) int {
	return cmp.Or(cmp.Compare(score2, score1), cmp.Compare(id1, id2))
}

// score is -w/ln(u). Machines may differ in the last bit of the logarithm, which
// matters only for two scores that close to each other, and then costs a hint.
func score(h uint64, weight int) float64 {
	// 52 bits and a half: 0.5/2^52 <= u <= 1-2^-53. With 53 bits the largest would
	// round to u = 1, whose logarithm is 0.
	u := (float64(h>>12) + 0.5) / (1 << 52)
	return -float64(max(weight, 1)) / math.Log(u)
}

// hashSpace holds a job name of 128 bytes, a shard number and a uuid, so that the
// text that is hashed stays on the stack.
const hashSpace = 256

// prefix puts a key into space, for hash.
func prefix(key string, space []byte) []byte {
	// The zero byte keeps ("ab", "c") and ("a", "bc") apart.
	return append(append(space, key...), 0)
}

// hash is the hash of a prefixed key and an ID. It writes behind key's end.
func hash(key []byte, id string) uint64 {
	return xxhash.Sum64(append(key, id...))
}
