//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// roads are the networks of one node to a Cluster: one to the master that is going to be away, one to all others.
type roads struct{ away, others redistest.Net }

func (r *roads) client(t *testing.T, c *redistest.Cluster, away *redistest.Server) *redis.ClusterClient {
	t.Helper()
	client := c.ClientOver(t, func(addr string) *redistest.Net {
		if addr == away.Addr() {
			return &r.away
		}
		return &r.others
	})
	t.Cleanup(func() {
		r.away.Heal()
		r.others.Heal()
	})
	return client
}

// lags keeps how late each tick of each job was started.
type lags struct {
	mu    sync.Mutex
	ticks map[string]map[int64]time.Duration // by job and tick, Unix seconds
}

func (l *lags) note(_ context.Context, run *jobs.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ticks[run.Job()] == nil {
		l.ticks[run.Job()] = make(map[int64]time.Duration)
	}
	l.ticks[run.Job()][run.Tick().Unix()] = time.Since(run.Tick())
	return nil
}

// check wants each of the jobs to have run at every second between two instants, most late at most. It returns the latest.
func (l *lags) check(t *testing.T, of []string, from, to time.Time, most time.Duration) (worst time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, job := range of {
		for tick := from.Unix() + 1; tick < to.Unix(); tick++ {
			lag, ran := l.ticks[job][tick]
			if !ran {
				t.Errorf("%s did not run at %d", job, tick)
			}
			if lag > most {
				t.Logf("%s at %d started %s late", job, tick, lag)
			}
			worst = max(worst, lag)
		}
	}
	if worst > most {
		t.Errorf("the latest run started %s late, %s at most is right", worst, most)
	}
	return worst
}

// stint is how long runs last there, until it is over. When the master goes away at half of that, their ends are still to be recorded.
const stint = 600 * time.Millisecond

// apart is a Cluster, one master of it that is going to be away, and two nodes whose jobs run every second. The partitions of half
// of the jobs live at that master.
type apart struct {
	cluster          *redistest.Cluster
	away             *redistest.Server
	n1, n2           roads
	there, elsewhere []string
	seen             lags
	over             chan struct{} // closed when the master is back
	lost             chan string   // the nodes of runs elsewhere that ended and should last
}

// startApart starts it. home says that the master to be away is that of the control record, the roster and the clock.
func startApart(ctx context.Context, t *testing.T, home bool) *apart {
	t.Helper()
	a := onApart(ctx, t, home)
	a.over, a.lost = make(chan struct{}), make(chan string, 100)
	all := jobs.NewRegistry()
	for i := range 20 {
		a.there = append(a.there, a.name(ctx, t, fmt.Sprint("there-", i), true))
		a.elsewhere = append(a.elsewhere, a.name(ctx, t, fmt.Sprint("elsewhere-", i), false))
	}
	for _, job := range a.elsewhere {
		all.MustAdd(jobs.Job{Name: job, Schedule: "@every 1s", Func: a.seen.note})
	}
	for _, job := range a.there {
		all.MustAdd(jobs.Job{Name: job, Schedule: "@every 1s", Func: func(ctx context.Context, run *jobs.Run) error {
			_ = a.seen.note(ctx, run)
			select {
			case <-time.After(stint):
			case <-a.over:
			case <-ctx.Done():
			}
			return nil
		}})
	}
	for i := range 80 { // more and more of them are due while the master is away
		all.MustAdd(jobs.Job{
			Name: a.name(ctx, t, fmt.Sprint("now-and-then-", i), true), Schedule: fmt.Sprintf("%d/10 * * * * *", i%10),
			Func: func(context.Context, *jobs.Run) error { return nil },
		})
	}
	for i := range 6 {
		long := a.name(ctx, t, fmt.Sprint("long-", i), false)
		all.MustAdd(jobs.Job{Name: long, Schedule: "@every 1s", TTL: 3 * time.Second, Func: func(ctx context.Context, run *jobs.Run) error {
			<-ctx.Done()
			a.lost <- run.Node()
			return nil
		}})
		all.MustAdd(jobs.Job{
			Name: a.name(ctx, t, fmt.Sprint("long-there-", i), true), Schedule: "@every 1s", TTL: 3 * time.Second,
			Func: func(ctx context.Context, _ *jobs.Run) error {
				<-ctx.Done() // its renewals are not answered, which is to hold up no other
				return nil
			},
		})
	}
	runOnCluster(t, a.n1.client(t, a.cluster, a.away), all, "n1", time.Second)
	runOnCluster(t, a.n2.client(t, a.cluster, a.away), all, "n2", time.Second)
	return a
}

// name makes the name of a job whose partition lives at the master that is going to be away, or at another one.
func (a *apart) name(ctx context.Context, t *testing.T, prefix string, there bool) string {
	for i := 0; ; i++ {
		job := fmt.Sprint(prefix, "-", i)
		master, err := a.cluster.Master(ctx, fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(job, twoMastersParts)))
		if err != nil {
			t.Fatal(err)
		}
		if (master == a.away) == there {
			return job
		}
	}
}

// kept wants no run elsewhere to have ended at a node that lives.
func (a *apart) kept(t *testing.T, living ...string) {
	t.Helper()
	for range len(a.lost) {
		if node := <-a.lost; slices.Contains(living, node) {
			t.Errorf("a run at another master ended at %s", node)
		}
	}
}

// until waits for an instant and returns it.
func until(ctx context.Context, t *testing.T, at time.Time) time.Time {
	t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	return at
}

// TestJobsOfOtherMastersGoOn has a master of a Cluster go silent for all nodes, and then a node die. Jobs whose partitions live at
// other masters go on as if nothing was: they are neither kept waiting by the claims and ends that the silent one does not answer,
// nor is what the dead node leaves behind forgotten.
func TestJobsOfOtherMastersGoOn(t *testing.T) {
	t.Parallel()
	goOn(t, stint/2)
}

// TestMasterGoesAwayAsTicksFall is the same when claims are the first to find out. They are all under way then.
func TestMasterGoesAwayAsTicksFall(t *testing.T) {
	t.Parallel()
	goOn(t, time.Second-20*time.Millisecond)
}

// goOn cuts the master off some time past a second.
func goOn(t *testing.T, past time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := startApart(ctx, t, false)
	began := time.Now().Add(2 * time.Second)
	cut := until(ctx, t, began.Add(2*time.Second).Truncate(time.Second).Add(past))
	a.seen.check(t, slices.Concat(a.there, a.elsewhere), began, cut.Add(-time.Second), time.Second)
	a.n1.away.Cut()
	a.n2.away.Cut()
	dead := until(ctx, t, cut.Truncate(time.Second).Add(7*time.Second+stint/2)) // between ticks, else what it was granted would wait for the end of its leases
	a.kept(t, "n1", "n2")
	a.n2.others.Cut()
	over := until(ctx, t, dead.Add(6*time.Second))
	a.kept(t, "n1")
	close(a.over)
	a.n1.away.Heal()
	until(ctx, t, over.Add(5*time.Second))

	t.Log("a master is silent, the latest elsewhere:", a.seen.check(t, a.elsewhere, cut, dead.Add(-time.Second), 2*time.Second))
	t.Log("a node is dead besides, the latest elsewhere:", a.seen.check(t, a.elsewhere, dead.Add(-time.Second), over.Add(-time.Second), 2*time.Second))
	t.Log("the master is back, the latest there:", a.seen.check(t, a.there, over.Add(2*time.Second), over.Add(4*time.Second), time.Second))
}

// TestJobsGoOnWithoutTheHomeMaster is the same for the master where nodes meet. They go by what they knew of each other and of the clock.
func TestJobsGoOnWithoutTheHomeMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := startApart(ctx, t, true)
	cut := until(ctx, t, time.Now().Add(4*time.Second).Truncate(time.Second).Add(stint/2))
	a.n1.away.Cut()
	a.n2.away.Cut()
	over := until(ctx, t, cut.Add(9*time.Second))
	a.kept(t, "n1", "n2")
	close(a.over)
	a.n1.away.Heal()
	a.n2.away.Heal()
	until(ctx, t, over.Add(5*time.Second))

	t.Log("the home master is silent, the latest elsewhere:", a.seen.check(t, a.elsewhere, cut, over.Add(-time.Second), 2*time.Second))
	t.Log("it is back, the latest there:", a.seen.check(t, a.there, over.Add(2*time.Second), over.Add(4*time.Second), time.Second))
}

// TestNodeStartsWithoutAMaster has a node start that does not see one master. It runs the jobs of the others, and those of that
// one when it is back.
func TestNodeStartsWithoutAMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a := startApart(ctx, t, false)
	until(ctx, t, time.Now().Add(3*time.Second))
	a.n1.away.Cut()
	a.n2.away.Cut()
	var n3 roads
	client := n3.client(t, a.cluster, a.away)
	n3.away.Cut()
	reg, ran := jobs.NewRegistry(), make(chan string, 1000)
	note := func(_ context.Context, run *jobs.Run) error {
		ran <- run.Job()
		return nil
	}
	reg.MustAdd(jobs.Job{Name: a.name(ctx, t, "new-elsewhere", false), Schedule: "@every 1s", Func: note})
	reg.MustAdd(jobs.Job{Name: a.name(ctx, t, "new-there", true), Schedule: "@every 1s", Func: note})
	runOnCluster(t, client, reg, "n3", time.Second)
	if job := next(ctx, t, "a run elsewhere", ran); !strings.HasPrefix(job, "new-elsewhere") {
		t.Errorf("%s ran, whose master is away", job)
	}
	n3.away.Heal()
	a.n1.away.Heal()
	a.n2.away.Heal()
	for !strings.HasPrefix(next(ctx, t, "a run there, when the master is back", ran), "new-there") {
		continue
	}
}
