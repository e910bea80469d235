package sharding_test

import (
	"fmt"

	"github.com/escapement/escapement/sharding"
)

func ExampleOwner() {
	nodes := []sharding.Node{{ID: "a1"}, {ID: "b1"}, {ID: "c1"}}
	for _, job := range []string{"report", "settle-orders", "mail/digest"} {
		owner, _ := sharding.Owner(job, nodes)
		fmt.Println(job, owner.ID)
	}
	// Output:
	// report b1
	// settle-orders b1
	// mail/digest c1
}

func ExampleRank() {
	nodes := []sharding.Node{{ID: "a1"}, {ID: "b1"}, {ID: "c1"}}
	for _, n := range sharding.Rank("settle-orders", nodes) {
		fmt.Println(n.ID)
	}
	// Output:
	// b1
	// c1
	// a1
}

// Hashing alone would give six of ten jobs to c1 and none to a1. With the bound no node has more
// than four, and the two jobs with the lowest scores at c1 go to the next node of their ranking.
func ExampleAssign() {
	nodes := []sharding.Node{{ID: "a1"}, {ID: "b1"}, {ID: "c1"}}
	var jobs []string
	for i := range 10 {
		jobs = append(jobs, fmt.Sprint("report-", i))
	}
	alone, bound := map[string]int{}, map[string]int{}
	for i, at := range sharding.Assign(jobs, nodes) {
		owner, _ := sharding.Owner(jobs[i], nodes)
		alone[owner.ID]++
		bound[nodes[at].ID]++
	}
	fmt.Println(alone)
	fmt.Println(bound)
	// Output:
	// map[b1:4 c1:6]
	// map[a1:2 b1:4 c1:4]
}

// The shards of a job are assigned like jobs, each by a key of its own.
func ExamplePart() {
	nodes := []sharding.Node{{ID: "a1"}, {ID: "b1"}, {ID: "c1"}}
	var parts []string
	for shard := range 3 {
		parts = append(parts, sharding.Part("settle-orders", shard, 3))
	}
	for i, at := range sharding.Assign(parts, nodes) {
		fmt.Println(parts[i], nodes[at].ID)
	}
	// Output:
	// settle-orders#0 b1
	// settle-orders#1 a1
	// settle-orders#2 b1
}

func ExampleMatches() {
	node := map[string]string{"zone": "eu", "disk": "fast"}
	fmt.Println(sharding.Matches(map[string]string{"zone": "eu"}, node))
	fmt.Println(sharding.Matches(map[string]string{"zone": "eu", "disk": "slow"}, node))
	fmt.Println(sharding.Matches(map[string]string{"gpu": ""}, node)) // missing is not empty
	// Output:
	// true
	// false
	// false
}

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
