//go:build unix

package scheduler_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

const (
	clusterNamespace  = "two"
	clusterPartitions = 16
	controlKey        = "{" + clusterNamespace + "}:control"
)

// partitionKey is a key of the partition of a job.
func partitionKey(job, what string) string {
	return fmt.Sprintf("{%s:%d}:%s", clusterNamespace, ledger.Partition(job, clusterPartitions), what)
}

// masters is a Redis Cluster of which one master is going to be away: S is a server of it.
type masters[S comparable] struct {
	t      *testing.T
	ctx    context.Context
	master func(key string) S
	client func() *redis.ClusterClient // the test closes it
	away   S
}

// choose chooses the master to be away: the one of the control record, the roster and the clock, or
// another one.
func (m *masters[S]) choose(home bool) {
	m.t.Helper()
	of := m.master(controlKey)
	_, m.away = m.jobAt("any", func(s S) bool { return (s == of) == home })
}

// virtualMasters is an embedded Cluster in virtual time.
type virtualMasters struct {
	masters[*redistest.Embedded]
	*redistest.EmbeddedCluster
}

// virtually runs a test with an embedded Cluster in virtual time: how late something is depends on
// no machine.
func virtually(t *testing.T, home bool, test func(m *virtualMasters)) {
	t.Helper()
	parallel(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := redistest.EmbedCluster()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		m := &virtualMasters{EmbeddedCluster: c, masters: masters[*redistest.Embedded]{t: t, ctx: ctx, master: c.Master}}
		t.Cleanup(func() {
			<-time.After(2 * time.Second) // go-redis may be about to dial once more
			c.Close()
			cancel()
		})
		m.client = func() *redis.ClusterClient { return closed(t, c.Client()) }
		m.choose(home)
		test(m)
	})
}

// closed closes a client when the test ends.
func closed(t *testing.T, client *redis.ClusterClient) *redis.ClusterClient {
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// realMasters is a Cluster of redis-servers, for what an embedded one does not do: fail over.
type realMasters struct {
	masters[*redistest.Server]
	*redistest.Cluster
}

// startReal starts redis-servers. Tests of them wait for events, most of the time, and run in
// parallel.
func startReal(t *testing.T, home bool) *realMasters {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), standstill)
	t.Cleanup(cancel)
	m := &realMasters{Cluster: redistest.StartCluster(t), masters: masters[*redistest.Server]{t: t, ctx: ctx}}
	m.client = func() *redis.ClusterClient { return m.Client(t) }
	m.master = func(key string) *redistest.Server {
		for {
			s, err := m.Master(m.ctx, key)
			if err == nil {
				return s
			}
			m.until(time.Now().Add(50*time.Millisecond), err.Error()) // on a busy machine a Cluster starts slowly
		}
	}
	m.choose(home)
	return m
}

// standstill is longer than any event takes on a machine that still does anything.
const standstill = 5 * time.Minute

// jobAt names a job whose partition lives at such a master.
func (m *masters[S]) jobAt(prefix string, at func(S) bool) (job string, master S) {
	m.t.Helper()
	for i := 0; ; i++ {
		job = fmt.Sprint(prefix, "-", i)
		if master = m.master(partitionKey(job, "jobs")); at(master) {
			return job, master
		}
	}
}

// job ticks each second; its partition lives at the master that is going to be away, or at another
// master.
func (m *masters[S]) job(prefix string, there bool, f jobs.Func) jobs.Job {
	m.t.Helper()
	name, _ := m.jobAt(prefix, func(s S) bool { return (s == m.away) == there })
	return jobs.Job{Name: name, Schedule: "@every 1s", Func: f}
}

// jobs are some of these.
func (m *masters[S]) jobs(n int, prefix string, there bool, f jobs.Func) (list []jobs.Job) {
	m.t.Helper()
	for i := range n {
		list = append(list, m.job(fmt.Sprint(prefix, "-", i), there, f))
	}
	return list
}

// roads are the networks of one node: one to the master that is going to be away, one to the rest.
type roads struct{ away, others redistest.Net }

// over is a client over networks.
func (m *virtualMasters) over(r *roads) *redis.ClusterClient {
	client := closed(m.t, m.ClientOver(func(addr string) *redistest.Net {
		if addr == m.away.Addr() {
			return &r.away
		}
		return &r.others
	}))
	m.t.Cleanup(func() {
		r.away.Heal()
		r.others.Heal()
	})
	return client
}

// run runs a node in the namespace of these tests until the test ends.
func (m *masters[S]) run(client redis.UniversalClient, cfg scheduler.Config, list ...jobs.Job) *scheduler.Node {
	m.t.Helper()
	cfg.Namespace, cfg.Partitions = clusterNamespace, clusterPartitions
	return runNode(m.t, client, cfg, list...)
}

// runNode runs a node until the test ends. Without a logger it logs nothing.
func runNode(t *testing.T, client redis.UniversalClient, cfg scheduler.Config, list ...jobs.Job) *scheduler.Node {
	t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	cfg.DrainTimeout, cfg.Logger = time.Second, cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	node := must[*scheduler.Node](t)(scheduler.New(client, reg, cfg))
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- node.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return node
}

// next is what comes next, or the test ends.
func next[T any](ctx context.Context, t *testing.T, what string, from <-chan T) (came T) {
	t.Helper()
	select {
	case came = <-from:
	case <-ctx.Done():
		t.Fatalf("%s: %v", what, ctx.Err())
	}
	return came
}

// ran waits for a run of a job.
func (m *masters[S]) ran(what string, j jobs.Job, s *sink, after time.Time) sunk {
	m.t.Helper()
	for {
		for _, r := range s.all() {
			if r.job == j.Name && r.at.After(after) {
				return r
			}
		}
		m.until(time.Now().Add(10*time.Millisecond), what)
	}
}

// until waits for an instant and returns it.
func (m *masters[S]) until(at time.Time, what ...string) time.Time {
	m.t.Helper()
	select {
	case <-time.After(time.Until(at)):
	case <-m.ctx.Done():
		m.t.Fatal(what, m.ctx.Err())
	}
	return at
}

// note is a function that writes its run to a sink.
func (s *sink) note(_ context.Context, r *jobs.Run) error {
	s.write(r)
	return nil
}
