package wire

import "time"

// Everything random in a simulation is a function of the seed and of its purpose. One generator for
// all draws would not do: the order of draws at the same instant is up to the Go scheduler.

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Fold adds a text to a digest (FNV-1a).
func Fold(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * 0x100000001b3
	}
	return mix(sum)
}

// SumOf is a digest of commands that does not depend on the order of a command's arguments: a node
// may batch the same things in another order.
func SumOf(all [][]string) uint64 {
	var sum uint64
	for _, args := range all {
		for _, a := range args {
			sum += Fold(0xcbf29ce484222325, a)
		}
	}
	return mix(sum)
}

// Lag is how long a process's message takes: mostly half a millisecond to three, once in a while up
// to a tenth of a second.
func Lag(seed uint64, from int, sum uint64, at time.Time) time.Duration {
	x := mix(seed ^ mix(uint64(from)) ^ sum ^ mix(uint64(at.UnixNano())))
	d := 500*time.Microsecond + time.Duration(x%2_500_000)
	if x>>32%64 == 0 {
		d += time.Duration(mix(x) % 100_000_000)
	}
	return d
}
