//go:build !race

package schedtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// rollout deploys a job that is new to four nodes, one after another. asked counts claims by the version of who asks,
// and job. With early, the old nodes have the job as well.
func rollout(seed uint64, early bool, asked map[int]map[string]int) Plan {
	var old []jobs.Job
	for i := range 8 {
		old = append(old, jobs.Job{Name: fmt.Sprint("old-", i), Schedule: "* * * * * *", TTL: 3 * time.Second, Func: worksFor(5 * time.Millisecond)})
	}
	all := append(slices.Clone(old), jobs.Job{Name: "new", Schedule: "* * * * * *", TTL: 3 * time.Second, Func: worksFor(5 * time.Millisecond)})
	if early {
		old = all
	}
	p := Plan{Seed: seed, Nodes: 4, Heal: 16 * time.Second, For: 30 * time.Second, Jobs: old, Versions: [][]jobs.Job{all}}
	for i, name := range p.names() {
		at := 4*time.Second + time.Duration(i)*2700*time.Millisecond
		p.Faults = append(p.Faults, Fault{Do: Deploy, Node: name, When: at, For: 200 * time.Millisecond, Version: 1})
	}
	p.watch = func(_ *cluster, m *message, _ []string) {
		if m.op != opClaim {
			return
		}
		version := m.conn.process.version
		if asked[version] == nil {
			asked[version] = make(map[string]int)
		}
		for _, i := range claims(m.commands[0]) {
			asked[version][m.commands[0][i+claimJob]]++
		}
	}
	return p
}

// A job that only the new version knows is asked for by nodes of that version alone, while old ones live, and from its
// first tick on each tick starts in its second: nobody waits for a node that does not know the job.
func TestOldNodesAreNotAskedForANewJob(t *testing.T) {
	asked, ticks, early, worst := make(map[int]map[string]int), 0, 0, time.Duration(0)
	for seed := range uint64(churnCases) {
		r := Run(t, rollout(seed, false, asked))
		var last time.Time
		for _, w := range r.Writes {
			if w.Job != "new" || w.Phase != verify.Start {
				continue
			}
			if !last.IsZero() && w.Tick.Sub(last) != time.Second {
				t.Errorf("seed %d: after the tick %s came %s", seed, last, w.Tick)
			}
			last, ticks, worst = w.Tick, ticks+1, max(worst, w.At.Sub(w.Tick))
			if since := w.Tick.Sub(bubbleBegan); since < 12*time.Second { // the last old node leaves after that
				early++
			}
		}
	}
	t.Logf("%d seeds: %d ticks of the new job, %d of them while old nodes lived, the latest %s after it was due", churnCases, ticks, early, worst.Round(time.Millisecond))
	t.Logf("claims of the new job: %d by old nodes, %d by new ones; of an old job: %d and %d", asked[0]["new"], asked[1]["new"], asked[0]["old-0"], asked[1]["old-0"])
	if n := asked[0]["new"]; n != 0 {
		t.Errorf("old nodes asked %d times for a job that they do not know", n)
	}
	if early < 5*churnCases || asked[0]["old-0"] == 0 || asked[1]["new"] < ticks {
		t.Error("the plans are empty: see above")
	}
	if most := 400 * time.Millisecond; worst > most {
		t.Errorf("a tick of the new job waited %s, more than %s", worst, most)
	}
	// The control: where the old nodes know the job, the count sees them.
	control := make(map[int]map[string]int)
	Run(t, rollout(1, true, control))
	if control[0]["new"] == 0 {
		t.Error("old nodes that know the job are not counted either")
	}
}

// cutOff is what became of runs on nodes that were parted from Redis.
type cutOff struct {
	mu     sync.Mutex
	ends   map[string]time.Time   // by run: when its context ended, of those that lost their lease
	jobs   map[string]string      // of these
	grants map[string][]time.Time // by job
	cuts   map[string]time.Time   // by run: when its node was cut off; filled at the end
	nodes  map[string]string      // by run
}

// parted is a plan in which one node after another is parted from Redis for twice the ttl, while its functions go on.
func (o *cutOff) parted(seed uint64) Plan {
	o.ends, o.jobs, o.grants = make(map[string]time.Time), make(map[string]string), make(map[string][]time.Time)
	o.cuts, o.nodes = make(map[string]time.Time), make(map[string]string)
	p := Plan{Seed: seed, For: 30 * time.Second, watch: o.granted, last: o.cut}
	for i := range 6 {
		p.Jobs = append(p.Jobs, jobs.Job{Name: fmt.Sprint("long-", i), Schedule: "* * * * * *", TTL: 3 * time.Second, Func: o.work})
	}
	for i, node := range []string{"a", "b", "c"} {
		when := 5*time.Second + time.Duration(i)*8*time.Second
		p.Faults = append(p.Faults, Fault{Do: Cut, Node: node, When: when, For: 6 * time.Second})
	}
	return p
}

func (o *cutOff) work(ctx context.Context, run *jobs.Run) error {
	err := worksFor(8*time.Second)(ctx, run)
	if errors.Is(err, locking.ErrLeaseLost) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ends[run.ID()], o.jobs[run.ID()], o.nodes[run.ID()] = time.Now(), run.Job(), run.Node()
	}
	return err
}

func (o *cutOff) granted(c *cluster, m *message, words []string) {
	if m.op != opClaim {
		return
	}
	for i, r := range c.passages(m) {
		if i*claimStride < len(words) && words[i*claimStride] == "granted" {
			o.grants[r.job] = append(o.grants[r.job], time.Now())
		}
	}
}

// cut notes when the node of each run was last cut off before the run's context ended.
func (o *cutOff) cut(c *cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for run, end := range o.ends {
		for _, d := range c.disturbed {
			if d.What == string(Cut) && slices.Contains(d.Nodes, o.nodes[run]) && d.From.Before(end) {
				o.cuts[run] = d.From
			}
		}
	}
}

// ahead are, for each run that lost its lease, how long before the next grant of its job its context ended.
func (o *cutOff) ahead() []time.Duration {
	var all []time.Duration
	for run, end := range o.ends {
		for _, at := range o.grants[o.jobs[run]] {
			if at.After(o.cuts[run]) {
				all = append(all, at.Sub(end))
				break
			}
		}
	}
	slices.Sort(all)
	return all
}

// A node that loses Redis ends its runs' contexts by itself: a margin before their leases end, and so before anybody else
// is granted their jobs.
func TestCutOffRunsEndBeforeTheNextGrant(t *testing.T) {
	var ahead []time.Duration
	var slowest time.Duration
	for seed := range uint64(churnCases) {
		var o cutOff
		p := o.parted(seed)
		Run(t, p)
		ahead = append(ahead, o.ahead()...)
		for run, end := range o.ends {
			slowest = max(slowest, end.Sub(o.cuts[run]))
		}
	}
	slices.Sort(ahead)
	if len(ahead) < churnCases {
		t.Fatalf("%d runs lost their lease in %d seeds: too few", len(ahead), churnCases)
	}
	t.Logf("%d seeds: %d runs on nodes without Redis; their contexts ended at most %s after the cut, and %s to %s (half of them %s) before the next grant of their job",
		churnCases, len(ahead), slowest.Round(time.Millisecond), ahead[0].Round(time.Millisecond), ahead[len(ahead)-1].Round(time.Millisecond), ahead[len(ahead)/2].Round(time.Millisecond))
	if most := 3*time.Second - 300*time.Millisecond; slowest > most {
		t.Errorf("a context ended %s after the cut, more than ttl less max_skew, %s", slowest, most)
	}
	if ahead[0] <= 0 {
		t.Errorf("a job was granted %s before the context of its last run had ended", -ahead[0])
	}
	var o cutOff
	p := o.parted(1)
	p.Break("claim", "local held = tick ~= '' and mode ~= 'a' and e.open ~= ''", "local held = false")
	Play(t, p)
	if broken := o.ahead(); len(broken) == 0 || broken[0] >= 0 {
		t.Errorf("without a check of who holds the job nobody is granted too early: %v", broken)
	}
}
