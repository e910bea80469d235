package sharding

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Split returns the part [lo, hi) of the range [from, to) that belongs to a shard, counted from 0. The parts
// of all shards lie one behind the other, overlap nowhere and leave nothing out; their sizes differ by at most
// one, the larger ones first. With more shards than values the last parts are empty. Any int64 will do, but to
// itself is outside, so that a range cannot hold the largest int64.
//
// All shards must get the same from and to, also a shard that starts late or again: a bound that is
// read from a table while other shards take rows out of it leaves gaps. Note it once for each tick.
//
// An empty range (to <= from), shards below 1 and a shard outside 0 to shards-1 give [from, from), which is
// empty. With other shards every part is another one.
func Split(from, to int64, shard, shards int) (lo, hi int64) {
	if to <= from || shard < 0 || shard >= shards {
		return from, from
	}
	// A range may be wider than int64 holds. Unsigned it fits, and adding wraps around to the right place.
	width, n, i := uint64(to)-uint64(from), uint64(shards), uint64(shard)
	size, larger := width/n, width%n
	start := uint64(from) + i*size + min(i, larger)
	if i < larger {
		size++
	}
	return int64(start), int64(start + size)
}

// Contains reports whether a key belongs to a shard, counted from 0. Each key belongs to exactly
// one, the same on every machine, in every process and in every later version: stored data may
// depend on it. Keys are spread evenly, whatever they look like.
//
// Contains is jump consistent hashing, because a modulus would move nearly every key when the number
// of shards changes. From n shards to n+1 one key in n+1 moves, to the new shard; no key moves
// between two old shards. With one shard fewer the last one's keys spread over the remaining shards.
//
// Shards below 1 and a shard outside 0 to shards-1 contain nothing.
func Contains(key string, shard, shards int) bool {
	return shards > 0 && jump(xxhash.Sum64String(key), shards) == shard
}

// jump is "A Fast, Minimal Memory, Consistent Hash Algorithm" by Lamping and Veach, with whole
// numbers where the paper has floating point: nothing rounds, so nothing depends on the machine. A
// key starts in shard 0 and jumps from each shard to the shard that takes it next; the last jump
// before shards counts. Shards must be 1 or more.
func jump(h uint64, shards int) int {
	at, next := uint64(0), uint64(0)
	for next < uint64(shards) {
		at = next
		h = h*2862933555777941757 + 1
		// (at+1) * 2^31 / d, d being between 1 and 2^31: as far again for a half, ten times as far for a tenth.
		high, low := bits.Mul64(at+1, 1<<31)
		d := h>>33 + 1
		if high >= d { // more than 64 bits: beyond any number of shards
			break
		}
		next, _ = bits.Div64(high, low, d)
	}
	return int(at)
}
