package sharding

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// boundPercent is how full a node may be, in percent of its share.
const boundPercent = 115

// Assign returns for each key the index in nodes of the node that goes first for it, as Owner does, but
// fills no node above its bound: 115 % of its share of the keys by weight, rounded up. Where there is
// room a key goes to its Owner. Else the keys that want that node the least, by score, each go to the
// first node of their Rank that has room.
//
// Every index is -1 when there are no nodes. A key that is given twice is one key: it counts once,
// and both get the same node. The result depends on the set of keys and on the nodes' IDs and
// weights alone, not on the order of either; but one key's node can depend on the other keys.
func Assign(keys []string, nodes []Node) []int {
	to := make([]int, len(keys))
	if len(nodes) == 0 {
		for i := range to {
			to[i] = -1
		}
		return to
	}
	wishes := firstChoices(keys, nodes)
	room := bounds(distinct(wishes), nodes)
	for i, w := range wishes {
		switch {
		case i > 0 && w.key == wishes[i-1].key:
			to[w.index] = to[wishes[i-1].index]
			continue
		case room[w.node] == 0:
			var space [hashSpace]byte
			w.node, _ = first(prefix(w.key, space[:0]), nodes, room)
		}
		to[w.index] = w.node
		room[w.node]--
	}
	return to
}

// Part is the key of one shard of a job in Rank and Assign, counted from 0: the job's name when it
// has but one. No job can be called like a part, because # is not in names. A shard's key does not
// depend on the number of shards, so that a job with more shards keeps its old ones in their
// places.
func Part(job string, shard, shards int) string {
	if shards <= 1 {
		return job
	}
	return job + "#" + strconv.Itoa(shard)
}

// wish is a key with its first choice.
type wish struct {
	key   string
	index int // in the caller's keys
	node  int // in the caller's nodes
	score float64
}

// firstChoices returns the keys in the order in which they are served: the strongest wish first, and
// equal keys side by side.
func firstChoices(keys []string, nodes []Node) []wish {
	wishes := make([]wish, len(keys))
	var space [hashSpace]byte
	for i, key := range keys {
		node, score := first(prefix(key, space[:0]), nodes, nil)
		wishes[i] = wish{key, i, node, score}
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.key, b.key))
	})
	return wishes
}

// distinct counts the keys among wishes in which equal ones are side by side.
func distinct(wishes []wish) int {
	n := 0
	for i, w := range wishes {
		if i == 0 || w.key != wishes[i-1].key {
			n++
		}
	}
	return n
}

// bounds returns how many of so many keys each node may take: rounded up, so together never less than all.
func bounds(keys int, nodes []Node) []int {
	total := 0.0
	for _, n := range nodes {
		total += float64(max(n.Weight, 1))
	}
	room := make([]int, len(nodes))
	for i, n := range nodes {
		// Whole numbers up to here, so that a quotient that is whole comes out whole.
		room[i] = int(math.Ceil(boundPercent * float64(keys) * float64(max(n.Weight, 1)) / (100 * total)))
	}
	return room
}
