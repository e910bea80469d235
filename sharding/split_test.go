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
		// What is left, divided by those who still get something, rounded up.
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

// Each value of a small range is in one part.
func TestSplitHoldsEachValueOnce(t *testing.T) {
	t.Parallel()
	for shards := 1; shards <= 12; shards++ {
		for width := range int64(30) {
			times := make(map[int64]int)
			for shard := shards - 1; shard >= 0; shard-- {
				lo, hi := Split(-7, width-7, shard, shards)
				for v := lo; v < hi; v++ {
					times[v]++
				}
			}
			for v := int64(-10); v < 30; v++ {
				want := 0
				if v >= -7 && v < width-7 {
					want = 1
				}
				if times[v] != want {
					t.Errorf("[-7, %d) in %d: %d is in %d parts", width-7, shards, v, times[v])
				}
			}
		}
	}
}

func TestSplitByHand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to      int64
		shard, shards int
		lo, hi        int64
	}{
		{0, 10, 0, 4, 0, 3},
		{0, 10, 1, 4, 3, 6},
		{0, 10, 2, 4, 6, 8},
		{0, 10, 3, 4, 8, 10},
		{5, 7, 1, 4, 6, 7},
		{5, 7, 2, 4, 7, 7}, // more shards than values
		{math.MinInt64, math.MaxInt64, 0, 1, math.MinInt64, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, 0, 2, math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64, 1, 2, 0, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, math.MaxInt - 1, math.MaxInt, math.MaxInt64 - 2, math.MaxInt64},
		{3, 3, 0, 1, 3, 3},
		{3, 2, 0, 1, 3, 3},
		{math.MaxInt64, math.MinInt64, 1, 2, math.MaxInt64, math.MaxInt64},
		{0, 10, -1, 4, 0, 0},
		{0, 10, 4, 4, 0, 0},
		{2, 10, 0, 0, 2, 2},
		{2, 10, 0, -3, 2, 2},
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

// slowJump tries, for each further shard, whether the key's next jump leads there.
func slowJump(h uint64, shards int) int {
	at := 0
	target := func() *big.Int {
		h = h*2862933555777941757 + 1
		n := big.NewInt(int64(at) + 1)
		return n.Lsh(n, 31).Div(n, new(big.Int).SetUint64(h>>33+1))
	}
	next := target()
	for n := 1; n < shards; n++ {
		if next.Cmp(big.NewInt(int64(n))) == 0 {
			at = n
			next = target()
		}
	}
	return at
}

func TestJumpIsTheSlowOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, shards := rapid.Uint64().Draw(t, "hash"), rapid.IntRange(1, 2000).Draw(t, "shards")
		if got, want := jump(h, shards), slowJump(h, shards); got != want {
			t.Fatalf("shard %d, want %d", got, want)
		}
	})
}

// The values that other libraries' tests have for this algorithm.
func TestJumpAsElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hash         uint64
		shards, want int
	}{{1, 1, 0}, {42, 57, 43}, {0xDEAD10CC, 1, 0}, {0xDEAD10CC, 666, 361}, {256, 1024, 520}} {
		if got := jump(tt.hash, tt.shards); got != tt.want {
			t.Errorf("%d of %d is in %d, want %d", tt.hash, tt.shards, got, tt.want)
		}
	}
}

// Data is stored by these. A change of any of them loses or doubles rows of those who cut their data by Contains.
func TestContainsForEver(t *testing.T) {
	t.Parallel()
	if len(fixedShards) < 10 {
		t.Fatalf("%d keys pin nothing", len(fixedShards))
	}
	for key, want := range fixedShards {
		for i, shards := range fixedCounts {
			for shard := -1; shard <= min(shards, 4096); shard++ {
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

func TestContainsExactlyOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, shards := rapid.String().Draw(t, "key"), rapid.IntRange(1, 300).Draw(t, "shards")
		in := 0
		for shard := -2; shard < shards+2; shard++ {
			if Contains(key, shard, shards) {
				in++
			}
		}
		if in != 1 {
			t.Fatalf("in %d shards", in)
		}
	})
}

// With one shard more a key stays, or goes to the new one.
func TestContainsMovesLittle(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	for _, shards := range []int{1, 2, 7, 16, 100} {
		moved := 0
		for i := range keys {
			h := xxhash.Sum64String(fmt.Sprint("customer-", i))
			before, after := jump(h, shards), jump(h, shards+1)
			if before != after {
				moved++
			}
			if before != after && after != shards {
				t.Errorf("%d shards and one more: key %d goes from %d to %d", shards, i, before, after)
			}
		}
		share := float64(keys) / float64(shards+1)
		if off := math.Abs(float64(moved) - share); off > 5*math.Sqrt(share) {
			t.Errorf("%d shards and one more: %d keys move, want about %.0f", shards, moved, share)
		}
	}
}

// Keys that look alike, as they do in practice, are spread like any others: five standard deviations at most.
func TestContainsSpreadsEvenly(t *testing.T) {
	t.Parallel()
	const keys = 32_000
	for _, shape := range []string{"%d", "customer-%08d", "%d@example.org", "%x/0000000000000000000000000000000000000000"} {
		for _, shards := range []int{2, 16, 100} {
			in := make([]int, shards)
			for i := range keys {
				in[jump(xxhash.Sum64String(fmt.Sprintf(shape, i)), shards)]++
			}
			mean := float64(keys) / float64(shards)
			for shard, n := range in {
				if math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
					t.Errorf("%s: %d of %d keys in shard %d of %d", shape, n, keys, shard, shards)
				}
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
