package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/sharding"
)

// town is a crowd and, for each node, the jobs it has in its program.
type town struct {
	crowd *crowd
	has   map[string][]*job
}

// newTown has nodes of three kinds: those that hold all of n jobs, those that lack the last ten, and those
// that hold another version of the last ten. Some jobs want one label, some another: as many nodes carry the one as
// the other.
func newTown(nodes, n int) town {
	w := town{crowd: &crowd{sets: make(map[string]map[string]string)}, has: make(map[string][]*job)}
	for at := range nodes {
		node := sharding.Node{ID: fmt.Sprintf("%08x-7f3a-4c1e-9d10-%012d", at*7919, at), Set: []string{"all", "fewer", "other"}[at%3*min(1, at%2)]}
		node.Labels = map[string]string{"disk": []string{"fast", "slow", "none"}[at%3]}
		w.crowd.nodes = append(w.crowd.nodes, node)
		set := make(map[string]string)
		for i := range n {
			j := &job{Job: jobs.Job{Name: fmt.Sprintf("job-%05d", i)}, digest: fmt.Sprint("digest-", i), place: -1}
			switch late := i >= n-10; {
			case late && node.Set == "fewer":
				continue
			case late && node.Set == "other":
				j.digest = fmt.Sprint("other-", i)
			}
			if i%7 < 2 {
				j.Labels = map[string]string{"disk": []string{"fast", "slow"}[i%7]}
			}
			if i%50 == 1 {
				j.Placement = jobs.PlacementRace
			}
			set[j.Name] = j.digest
			w.has[node.ID] = append(w.has[node.ID], j)
		}
		w.crowd.sets[node.Set] = set
	}
	return w
}

// Each node works out by itself, from its own list of jobs, what is its. Together they leave out none, and
// none is two nodes' unless it is raced for.
func TestOwnersAgree(t *testing.T) {
	const nodes, n = 9, 700
	w := newTown(nodes, n)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	owners, may := make(map[string][]string), make(map[string]int)
	for _, node := range w.crowd.nodes {
		list := slices.Clone(w.has[node.ID])
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		owned := w.crowd.owned(list, node.ID)
		for _, j := range list {
			key := j.Name + " " + j.digest
			holds := slices.ContainsFunc(w.crowd.holders(j), func(n sharding.Node) bool { return n.ID == node.ID })
			if owned[j] && !holds {
				t.Errorf("%s goes first for %s, which it may not run", node.ID, key)
			}
			if owned[j] {
				owners[key] = append(owners[key], node.ID)
			}
			want := min(1, len(w.crowd.holders(j)))
			if j.Placement == jobs.PlacementRace {
				want = len(w.crowd.holders(j))
			}
			may[key] = want
		}
	}
	several := 0
	for key, want := range may {
		if len(owners[key]) != want {
			t.Errorf("%d nodes go first for %s, want %d: %q", len(owners[key]), key, want, owners[key])
		}
		several += max(0, want-1)
	}
	if len(may) <= n || several == 0 {
		t.Fatalf("%d jobs and versions, %d raced for: the cases are not there", len(may), several)
	}
}

// Nodes that may run the same jobs are within the bound, and jobs that are raced for count for nobody.
func TestOwnersAreBounded(t *testing.T) {
	const nodes, n = 10, 1000
	c, all := crowdOf(nodes, n+500)
	for _, j := range all[n:] {
		j.Placement = jobs.PlacementRace
	}
	most := 0
	for set := range 20 {
		for i := range c.nodes {
			c.nodes[i].ID = fmt.Sprintf("%d-%d", set, i)
		}
		for _, node := range c.nodes {
			owned := c.owned(all, node.ID)
			most = max(most, len(owned)-500)
			if len(owned)-500 > n/nodes*115/100 {
				t.Errorf("%s goes first for %d of %d jobs", node.ID, len(owned)-500, n)
			}
		}
	}
	if most != n/nodes*115/100 {
		t.Errorf("no node has more than %d of %d jobs: the bound was never needed", most, n)
	}
}

// The shards of a job are given out among themselves, one node each; where nodes race all go first for all, if they
// may run the job.
func TestOwnersOfShards(t *testing.T) {
	c, all := crowdOf(4, 1)
	all[0].Shards = 12
	for _, node := range c.nodes {
		if owned := c.owned(all, node.ID); len(owned) > 0 {
			t.Errorf("%s goes first for the whole of a sharded job", node.ID)
		}
	}
	for placement, want := range map[jobs.Placement]int{jobs.PlacementOwner: 1, jobs.PlacementRace: 4} {
		all[0].Placement = placement
		count := make([]int, 12)
		for _, node := range c.nodes {
			for _, shard := range (&Node{id: node.ID}).shardsFirst(all[0], c.holders(all[0])) {
				count[shard]++
			}
		}
		for shard, n := range count {
			if n != want {
				t.Errorf("placement %s: %d nodes go first for shard %d, want %d", placement, n, shard, want)
			}
		}
		if mine := (&Node{id: "elsewhere"}).shardsFirst(all[0], c.holders(all[0])); len(mine) > 0 {
			t.Errorf("placement %s: a node that may not run the job goes first for shards %v", placement, mine)
		}
	}
}

// Companies are what is found by listing the nodes for each job anew, in crowds with nodes that drain, sets that could
// not be read, and labels that come to the same nodes as others.
func TestCompaniesAreTheListed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	merged := 0
	for range 2000 {
		c, all := randomCrowd(r)
		got, want := c.companies(all), listed(c, all)
		if !slices.Equal(spell(got), spell(want)) {
			t.Fatalf("crowd %+v\ngot  %q\nwant %q", c, spell(got), spell(want))
		}
		for _, y := range got {
			for _, j := range y.jobs {
				if !maps.Equal(j.Labels, y.jobs[0].Labels) {
					merged++
				}
			}
		}
	}
	if merged == 0 {
		t.Fatal("no two jobs with different labels had the same nodes: the case is not there")
	}
}

// randomCrowd is a small crowd, and jobs that some of it hold.
func randomCrowd(r *rand.Rand) (*crowd, []*job) {
	c := &crowd{sets: make(map[string]map[string]string)}
	labels := func() map[string]string {
		some := make(map[string]string)
		for _, k := range []string{"disk", "zone"}[:r.IntN(3)] {
			some[k] = fmt.Sprint(r.IntN(2))
		}
		return some
	}
	for i := range r.IntN(7) {
		set := fmt.Sprint("set-", r.IntN(4))
		c.nodes = append(c.nodes, sharding.Node{ID: fmt.Sprint("node-", i), Set: set, Labels: labels(), Draining: r.IntN(5) == 0})
		if set != "set-0" { // which could not be read
			c.sets[set] = make(map[string]string)
		}
	}
	all := make([]*job, 12)
	for i := range all {
		j := &job{Job: jobs.Job{Name: fmt.Sprint("job-", i), Labels: labels(), Shards: r.IntN(3)}, digest: "d0"}
		if r.IntN(4) == 0 {
			j.Placement = jobs.PlacementRace
		}
		for _, defs := range c.sets {
			if r.IntN(5) > 0 {
				defs[j.Name] = fmt.Sprint("d", r.IntN(5)/4)
			}
		}
		all[i] = j
	}
	return c, all
}

// listed are companies, the plain way.
func listed(c *crowd, all []*job) []*company {
	var list []*company
	for _, j := range all {
		nodes := slices.DeleteFunc(sharding.Eligible(c.nodes, j.Labels), func(n sharding.Node) bool {
			return c.sets[n.Set][j.Name] != j.digest
		})
		if len(nodes) == 0 || j.Shards > 1 {
			continue
		}
		at := slices.IndexFunc(list, func(y *company) bool { return slices.EqualFunc(y.nodes, nodes, sameNode) })
		if at < 0 {
			at, list = len(list), append(list, &company{nodes: nodes})
		}
		if y := list[at]; j.Placement == jobs.PlacementRace {
			y.raced = append(y.raced, j)
		} else {
			y.keys, y.jobs = append(y.keys, j.Name), append(y.jobs, j)
		}
	}
	return list
}

// spell writes companies down, so that they can be compared and shown.
func spell(list []*company) []string {
	var all []string
	for _, y := range list {
		text := fmt.Sprint(y.nodes, y.keys, " jobs")
		for _, j := range y.jobs {
			text += " " + j.Name
		}
		text += " raced"
		for _, j := range y.raced {
			text += " " + j.Name
		}
		all = append(all, text)
	}
	return all
}

func BenchmarkOwners(b *testing.B) {
	for _, nodes := range []int{3, 20} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			w := newTown(nodes, 10_000)
			self := w.crowd.nodes[0].ID
			b.ReportAllocs()
			for b.Loop() {
				w.crowd.owned(w.has[self], self)
			}
		})
	}
}

// What a node that sweeps asks for each late job.
func BenchmarkHolders(b *testing.B) {
	w := newTown(20, 100)
	all := w.has[w.crowd.nodes[0].ID]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.crowd.holders(all[i%len(all)])
	}
}
