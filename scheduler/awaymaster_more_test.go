//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// onApart is a Cluster and one master of it that is going to be away, without nodes. home is as for startApart.
func onApart(ctx context.Context, t *testing.T, home bool) *apart {
	t.Helper()
	a := &apart{cluster: redistest.StartCluster(t), seen: lags{ticks: make(map[string]map[int64]time.Duration)}}
	of, err := a.cluster.Master(ctx, "{"+twoMasters+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	_, _, a.away = jobAt(ctx, t, a.cluster, func(s *redistest.Server) bool { return (s == of) == home })
	return a
}

// two are a job whose master is not going to be away, and one whose master is; both tick every second.
func (a *apart) two(ctx context.Context, t *testing.T, note jobs.Func) (reg *jobs.Registry, elsewhere, there string) {
	t.Helper()
	reg, elsewhere, there = jobs.NewRegistry(), a.name(ctx, t, "elsewhere", false), a.name(ctx, t, "there", true)
	reg.MustAdd(jobs.Job{Name: elsewhere, Schedule: "@every 1s", Func: note})
	reg.MustAdd(jobs.Job{Name: there, Schedule: "@every 1s", Func: note})
	return reg, elsewhere, there
}

// noting has a function that says which job ran.
func noting() (ran chan string, note jobs.Func) {
	ran = make(chan string, 1000)
	return ran, func(_ context.Context, run *jobs.Run) error {
		ran <- run.Job()
		return nil
	}
}

// awaitRun waits for a run of a job.
func awaitRun(ctx context.Context, t *testing.T, what, job string, ran <-chan string) {
	t.Helper()
	for next(ctx, t, what, ran) != job {
		continue
	}
}

// TestFollowerOfASilentMaster has a node start with a job that follows one at a silent master. Jobs of the same partition, behind it in the
// batch, are registered all the same, and it is when the master is back; also where the namespace has a generation.
func TestFollowerOfASilentMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a := onApart(ctx, t, false)
	up, follower := a.name(ctx, t, "up", true), a.name(ctx, t, "follower", false)
	behind := "z-0" // after it by name
	for i := 1; ledger.Partition(behind, twoMastersParts) != ledger.Partition(follower, twoMastersParts); i++ {
		behind = fmt.Sprint("z-", i)
	}
	ran, note := noting()
	config := func(name string) scheduler.Config {
		return scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: name, Generation: "green", FailoverHold: time.Second}
	}
	first := jobs.NewRegistry()
	first.MustAdd(jobs.Job{Name: "first", Schedule: "@every 1s", Func: note})
	runNode(t, a.cluster.Client(t), first, config("n1"))
	awaitRun(ctx, t, "the namespace", "first", ran)

	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: up, Schedule: "@every 1s", Func: note})
	reg.MustAdd(jobs.Job{Name: follower, After: up, Func: note})
	reg.MustAdd(jobs.Job{Name: behind, Schedule: "@every 1s", Func: note})
	var road roads
	client := road.client(t, a.cluster, a.away)
	road.away.Cut()
	runNode(t, client, reg, config("n2"))
	awaitRun(ctx, t, "the job behind the follower", behind, ran)
	road.away.Heal()
	awaitRun(ctx, t, "the follower, when the master is back", follower, ran)
}

// TestReadyWithoutAMaster: a node is ready, all the time, while it can run something, whichever master is silent; and not when a
// master refuses what it asks.
func TestReadyWithoutAMaster(t *testing.T) {
	for _, home := range []bool{true, false} {
		t.Run(fmt.Sprint("home ", home), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			a := onApart(ctx, t, home)
			ran, note := noting()
			reg, _, there := a.two(ctx, t, note)
			var road roads
			node := runNode(t, road.client(t, a.cluster, a.away), reg, scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: "n1"})
			awaitRun(ctx, t, "a run", there, ran)
			road.away.Cut()
			for end := until(ctx, t, time.Now().Add(2*time.Second)).Add(3 * time.Second); time.Now().Before(end); until(ctx, t, time.Now().Add(10*time.Millisecond)) {
				if err := node.Ready(); err != nil {
					t.Fatalf("not ready while one master is silent: %v", err)
				}
			}
			road.away.Heal()
			awaitRun(ctx, t, "a run, when the master is back", there, ran)
			if home {
				return // what follows is the same at each master
			}

			direct := a.away.Client(t)
			key := fmt.Sprintf("{%s:%d}:pending", twoMasters, ledger.Partition(there, twoMastersParts))
			if err := direct.Set(ctx, key, "no sorted set", 0).Err(); err != nil {
				t.Fatal(err)
			}
			for node.Ready() == nil {
				until(ctx, t, time.Now().Add(10*time.Millisecond))
			}
			for end := time.Now().Add(2 * time.Second); time.Now().Before(end); until(ctx, t, time.Now().Add(10*time.Millisecond)) {
				if node.Ready() == nil {
					t.Fatal("ready while a master refuses what the sweep asks")
				}
			}
		})
	}
}

// TestMasterWithAnotherClock has the claims at one master be refused for its clock, again and again. They keep no slot, and those at
// others go on.
func TestMasterWithAnotherClock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a := onApart(ctx, t, false)
	ran, note := noting()
	reg, elsewhere, _ := a.two(ctx, t, note)
	keys := make(map[string]bool) // in which its partitions keep their jobs
	for i := range 40 {           // more than the node has slots
		job := a.name(ctx, t, fmt.Sprint("there-", i), true)
		keys[fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(job, twoMastersParts))] = true
		reg.MustAdd(jobs.Job{Name: job, Schedule: "@every 1s", Func: note})
	}
	client := a.cluster.Client(t)
	client.AddHook(otherClock{keys: keys, from: time.Now().Add(3 * time.Second)})
	runOnCluster(t, client, reg, "n1", time.Second)
	awaitRun(ctx, t, "a run", elsewhere, ran)
	until(ctx, t, time.Now().Add(6*time.Second))
	for len(ran) > 0 {
		<-ran
	}
	for range 3 {
		awaitRun(ctx, t, "a run elsewhere", elsewhere, ran)
	}
}

// otherClock makes the estimate of Redis' time, with which scripts that grant begin, a minute early for some keys, from an instant on.
type otherClock struct {
	keys map[string]bool
	from time.Time
}

func (otherClock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (otherClock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o otherClock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if name := cmd.Name(); (name == "evalsha" || name == "eval") && time.Now().After(o.from) && o.keys[fmt.Sprint(args[3])] {
			first := 3 + args[2].(int)
			if ms, err := strconv.ParseInt(fmt.Sprint(args[first]), 10, 64); err == nil && ms > 1e12 {
				args[first] = strconv.FormatInt(ms-60_000, 10)
			}
		}
		return next(ctx, cmd)
	}
}

// TestConfirmOnACluster: a node whose grants nobody can confirm runs nothing and is not ready; that a master is silent keeps no other's
// replicas from being believed again.
func TestConfirmOnACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	a := onApart(ctx, t, false)
	ran, note := noting()
	reg, elsewhere, there := a.two(ctx, t, note)
	config := scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: "n1", Confirm: scheduler.ConfirmMajority}
	var road roads
	node := runNode(t, road.client(t, a.cluster, a.away), reg, config)
	awaitRun(ctx, t, "a confirmed run", elsewhere, ran)
	awaitRun(ctx, t, "a confirmed run", there, ran)

	master, err := a.cluster.Master(ctx, fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(elsewhere, twoMastersParts)))
	if err != nil {
		t.Fatal(err)
	}
	replica, err := a.cluster.Replica(ctx, master)
	if err != nil {
		t.Fatal(err)
	}
	road.away.Cut()
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	for err := node.Ready(); err == nil || !strings.Contains(err.Error(), "replicas"); err = node.Ready() {
		until(ctx, t, time.Now().Add(10*time.Millisecond))
	}
	for len(ran) > 0 {
		<-ran
	}
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	awaitRun(ctx, t, "a run whose replica is back, while another master is silent", elsewhere, ran)
	if late := time.Since(back); late > 5*time.Second {
		t.Errorf("it began %s after its replica was back", late)
	}
}

// TestDeadNodeIsReapedWithoutTheHomeMaster has a node die while the master where nodes meet is away. A run of it at another master is
// reaped all the same, and its job goes on.
func TestDeadNodeIsReapedWithoutTheHomeMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, true)
	elsewhere, began, ran := a.name(ctx, t, "elsewhere", false), make(chan string, 10), make(chan string, 1000)
	with := func(f jobs.Func) *jobs.Registry {
		reg := jobs.NewRegistry()
		reg.MustAdd(jobs.Job{Name: elsewhere, Schedule: "@every 1s", TTL: 4 * time.Second, Func: f})
		return reg
	}
	runOnCluster(t, a.n2.client(t, a.cluster, a.away), with(func(ctx context.Context, run *jobs.Run) error {
		began <- run.Job()
		<-ctx.Done()
		return nil
	}), "n2", time.Second)
	next(ctx, t, "the run of the node that is going to die", began)
	runOnCluster(t, a.n1.client(t, a.cluster, a.away), with(func(_ context.Context, run *jobs.Run) error {
		ran <- run.Job()
		return nil
	}), "n1", time.Second)
	until(ctx, t, time.Now().Add(6*time.Second)) // it has seen the clock run steadily for the ttl
	a.n1.away.Cut()
	a.n2.away.Cut()
	until(ctx, t, time.Now().Add(4*time.Second))
	a.n2.others.Cut()
	dead := time.Now()
	soon, enough := context.WithTimeout(ctx, 15*time.Second)
	defer enough()
	next(soon, t, "a run of its job, while nodes cannot meet", ran)
	t.Log("the job went on after", time.Since(dead))
}
