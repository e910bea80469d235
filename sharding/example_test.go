package sharding_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
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

// Hashing alone would give six of ten jobs to c1 and none to a1. With the bound nobody has more than
// four, and the two that want c1 the least go to the next node of their ranking.
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

// A job's labels and draining nodes are sorted out before the ranking.
func ExampleEligible() {
	nodes := []sharding.Node{
		{ID: "a1", Labels: map[string]string{"zone": "eu"}},
		{ID: "b1", Labels: map[string]string{"zone": "us"}},
		{ID: "c1", Labels: map[string]string{"zone": "eu"}, Draining: true},
	}
	may := sharding.Eligible(nodes, map[string]string{"zone": "eu"})
	owner, ok := sharding.Owner("settle-orders", may)
	fmt.Println(len(may), owner.ID, ok)
	// Output: 1 a1 true
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

// exampleClient stands for your own Redis client.
func exampleClient() (*redis.Client, func()) {
	server, err := redistest.Embed()
	if err != nil {
		log.Fatal(err)
	}
	client := server.Client()
	return client, func() {
		if err := client.Close(); err != nil {
			log.Print(err)
		}
		server.Close()
	}
}

func ExampleRoster_Beat() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	roster := sharding.NewRoster(client, sharding.RosterConfig{Namespace: "shop"})

	for _, id := range []string{"a1", "b1"} {
		view, err := roster.Beat(ctx, sharding.Member{Node: sharding.Node{ID: id}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, "sees", len(view.Members))
	}
	if err := roster.Leave(ctx, "a1"); err != nil {
		log.Fatal(err)
	}
	members, err := roster.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(members[0].ID, members[0].State)
	// Output:
	// a1 sees 1
	// b1 sees 2
	// b1 active
}

// A node announces which definitions it holds; the others learn which jobs it has.
func ExampleRoster_Announce() {
	client, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	roster := sharding.NewRoster(client, sharding.RosterConfig{})

	defs := map[string]string{"report": "5d41402abc4b2a76", "mail": "7d793037a0760186"}
	set := sharding.SetDigest(defs)
	if err := roster.Announce(ctx, set, defs); err != nil {
		log.Fatal(err)
	}
	view, err := roster.Beat(ctx, sharding.Member{Node: sharding.Node{ID: "a1", Set: set}})
	if err != nil {
		log.Fatal(err)
	}
	sets, err := roster.Sets(ctx, []string{view.Members[0].Set})
	if err != nil {
		log.Fatal(err)
	}
	_, holds := sets[view.Members[0].Set]["report"]
	fmt.Println("announced:", !view.Unannounced, "holds report:", holds)
	// Output: announced: true holds report: true
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
