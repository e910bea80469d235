package sharding_test

import (
	"fmt"

	"github.com/escapement/escapement/sharding"
)

// A job with shards: 4 cuts ids 1 to 10; in its function run.Shard() and run.Shards() are the last two arguments.
func ExampleSplit() {
	for shard := range 4 {
		lo, hi := sharding.Split(1, 11, shard, 4)
		fmt.Printf("shard %d: WHERE id >= %d AND id < %d\n", shard, lo, hi)
	}
	// Output:
	// shard 0: WHERE id >= 1 AND id < 4
	// shard 1: WHERE id >= 4 AND id < 7
	// shard 2: WHERE id >= 7 AND id < 9
	// shard 3: WHERE id >= 9 AND id < 11
}

// Where there are names and no numbers, each shard goes through all of them and takes its own.
func ExampleContains() {
	for shard := range 3 {
		for _, customer := range []string{"ann", "ben", "cleo", "dan", "eve", "finn"} {
			if sharding.Contains(customer, shard, 3) {
				fmt.Println("shard", shard, customer)
			}
		}
	}
	// Output:
	// shard 0 ben
	// shard 0 cleo
	// shard 1 ann
	// shard 1 finn
	// shard 2 dan
	// shard 2 eve
}
