package sharding

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// slowSplit walks from the start of the range, in numbers that cannot overflow, and hands out one part after
// the other.
func slowSplit(from, to int64, shards int) (bounds []string) {
	at := big.NewInt(from)
	left := new(big.Int).Sub(big.NewInt(to), at)
	bounds = append(bounds, at.String())
	for n := shards; n > 0; n-- {
		// The rest, divided by the number of remaining shards, rounded up.
		size := new(big.Int).Add(left, big.NewInt(int64(n-1)))
		size.Div(size, big.NewInt(int64(n)))
		at.Add(at, size)
		left.Sub(left, size)
		bounds = append(bounds, at.String())
	}
	return bounds
}

// drawInt prefers the places where arithmetic breaks.
func drawInt() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-50, 50),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}))
}

func TestSplitIsTheSlowOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawInt().Draw(t, "from"), drawInt().Draw(t, "to")
		if to < from {
			from, to = to, from
		}
		shards := rapid.IntRange(1, 200).Draw(t, "shards")
		want := slowSplit(from, to, shards)
		for shard := range shards {
			lo, hi := Split(from, to, shard, shards)
			if from == to {
				if lo != from || hi != from {
					t.Fatalf("an empty range gives [%d, %d)", lo, hi)
				}
				continue
			}
			if fmt.Sprint(lo) != want[shard] || fmt.Sprint(hi) != want[shard+1] {
				t.Fatalf("shard %d is [%d, %d), want [%s, %s)", shard, lo, hi, want[shard], want[shard+1])
			}
		}
	})
}

func TestSplitByHand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to      int64
		shard, shards int
		lo, hi        int64
	}{
		{0, 10, 0, 4, 0, 3},
		{5, 7, 2, 4, 7, 7}, // more shards than values
		{math.MinInt64, math.MaxInt64, 1, 2, 0, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, math.MaxInt - 1, math.MaxInt, math.MaxInt64 - 2, math.MaxInt64},
		{3, 2, 0, 1, 3, 3},
		{math.MaxInt64, math.MinInt64, 1, 2, math.MaxInt64, math.MaxInt64},
		{0, 10, -1, 4, 0, 0},
		{0, 10, 4, 4, 0, 0},
		{2, 10, 0, 0, 2, 2},
		{2, 10, math.MinInt, math.MinInt, 2, 2},
	} {
		if lo, hi := Split(tt.from, tt.to, tt.shard, tt.shards); lo != tt.lo || hi != tt.hi {
			t.Errorf("Split(%d, %d, %d, %d) is [%d, %d), want [%d, %d)", tt.from, tt.to, tt.shard, tt.shards, lo, hi, tt.lo, tt.hi)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, v := range []int64{math.MinInt64, -1, 0, 7, math.MaxInt64} {
		f.Add(v, int64(math.MaxInt64), 1, 3)
		f.Add(int64(math.MinInt64), v, 0, math.MaxInt)
		f.Add(v, v+10, -1, 0)
	}
	f.Fuzz(func(t *testing.T, from, to int64, shard, shards int) {
		lo, hi := Split(from, to, shard, shards)
		if shards < 1 || shard < 0 || shard >= shards || to <= from {
			if lo != from || hi != from {
				t.Fatalf("[%d, %d), want nothing", lo, hi)
			}
			return
		}
		if lo > hi || lo < from || hi > to {
			t.Fatalf("[%d, %d) is not inside", lo, hi)
		}
		before, after := from, to
		if shard > 0 {
			_, before = Split(from, to, shard-1, shards)
		}
		if shard < shards-1 {
			after, _ = Split(from, to, shard+1, shards)
		}
		if lo != before || hi != after {
			t.Fatalf("[%d, %d), but its neighbours leave [%d, %d)", lo, hi, before, after)
		}
		least := (uint64(to) - uint64(from)) / uint64(shards)
		if size := uint64(hi) - uint64(lo); size != least && size != least+1 {
			t.Fatalf("size %d, want %d or one more", size, least)
		}
	})
}

// fixedShards are keys with the shard of each, for each number in fixedCounts. They were worked out
// apart from this package, with the hash and the jump as published.
var (
	fixedCounts = []int{1, 2, 3, 16, 100, 1024, math.MaxInt32}
	fixedShards = map[string][]int{
		"":                  {0, 1, 2, 7, 40, 332, 730414282},
		"a":                 {0, 1, 1, 8, 17, 894, 582641062},
		"1":                 {0, 1, 2, 2, 48, 957, 1853044311},
		"2":                 {0, 0, 2, 3, 91, 682, 247554806},
		"customer-1":        {0, 0, 0, 0, 39, 939, 471546013},
		"customer-2":        {0, 0, 0, 8, 28, 809, 527994242},
		"customer-12345678": {0, 1, 1, 14, 34, 583, 706776221},
		"ann@example.org":   {0, 0, 0, 3, 3, 173, 880888847},
		"größe":             {0, 0, 0, 14, 53, 518, 1673189749},
		"a-rather-long-key-of-a-customer-to-fill-more-than-one-stripe": {0, 0, 0, 0, 85, 224, 421289110},
	}
)

// Stored data depends on these shards. A change of any of them loses or doubles rows of programs
// that cut their data by Contains.
func TestContainsForEver(t *testing.T) {
	t.Parallel()
	for key, want := range fixedShards {
		for i, shards := range fixedCounts {
			for shard := -1; shard <= min(shards, 1024); shard++ {
				if got := Contains(key, shard, shards); got != (shard == want[i]) {
					t.Errorf("Contains(%q, %d, %d) is %t", key, shard, shards, got)
				}
			}
			if !Contains(key, want[i], shards) {
				t.Errorf("%q is not in shard %d of %d but in %d", key, want[i], shards, jump(xxhash.Sum64String(key), shards))
			}
		}
	}
}

// Keys that look alike, as they do in practice, are spread evenly: five standard deviations at
// most.
func TestContainsSpreadsEvenly(t *testing.T) {
	t.Parallel()
	const keys, shards = 8_000, 16
	for _, shape := range []string{"%d", "customer-%08d", "%d@example.org", "%x/0000000000000000000000000000000000000000"} {
		var in [shards]int
		for i := range keys {
			in[jump(xxhash.Sum64String(fmt.Sprintf(shape, i)), shards)]++
		}
		for shard, n := range in {
			if mean := float64(keys) / shards; math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
				t.Errorf("%s: %d of %d keys in shard %d of %d", shape, n, keys, shard, shards)
			}
		}
	}
}

func FuzzContains(f *testing.F) {
	f.Add("", 0, 1)
	f.Add("customer-1", -1, 16)
	f.Add("customer-1", math.MaxInt, math.MaxInt)
	f.Add("größe", math.MaxInt-1, math.MaxInt)
	f.Add("x", math.MinInt, math.MinInt)
	f.Fuzz(func(t *testing.T, key string, shard, shards int) {
		got := Contains(key, shard, shards)
		if shards < 1 || shard < 0 || shard >= shards {
			if got {
				t.Fatal("a shard that there is not contains a key")
			}
			return
		}
		home := jump(xxhash.Sum64String(key), shards)
		if home < 0 || home >= shards || got != (home == shard) || !Contains(key, home, shards) {
			t.Fatalf("Contains is %t, its home is %d", got, home)
		}
	})
}

func BenchmarkContains(b *testing.B) {
	for b.Loop() {
		Contains("customer-12345678", 3, 16)
	}
}
