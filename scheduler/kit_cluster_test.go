//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
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

// masters is a real Redis Cluster and one master of it that is going to be away. Tests of it wait most of the time, and run in parallel.
type masters struct {
	*redistest.Cluster
	t    *testing.T
	ctx  context.Context
	away *redistest.Server
}

// startMasters starts it. home says that the master to be away is that of the control record, the roster and the clock.
func startMasters(t *testing.T, home bool) *masters {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a loaded machine takes long to start six servers
	t.Cleanup(cancel)
	m := &masters{Cluster: redistest.StartCluster(t), t: t, ctx: ctx}
	of := m.master(controlKey)
	_, m.away = m.jobAt("any", func(s *redistest.Server) bool { return (s == of) == home })
	return m
}

func (m *masters) master(key string) *redistest.Server {
	m.t.Helper()
	for {
		s, err := m.Master(m.ctx, key)
		if err == nil {
			return s
		}
		m.until(time.Now().Add(50*time.Millisecond), err.Error()) // on a busy machine it takes long
	}
}

// jobAt names a job whose partition lives at such a master.
func (m *masters) jobAt(prefix string, at func(*redistest.Server) bool) (job string, master *redistest.Server) {
	m.t.Helper()
	for i := 0; master == nil || !at(master); i++ {
		job = fmt.Sprint(prefix, "-", i)
		master = m.master(partitionKey(job, "jobs"))
	}
	return job, master
}

// job is one that ticks each second, and whose partition lives at the master that is going to be away, or at another one.
func (m *masters) job(prefix string, there bool, f jobs.Func) jobs.Job {
	m.t.Helper()
	name, _ := m.jobAt(prefix, func(s *redistest.Server) bool { return (s == m.away) == there })
	return jobs.Job{Name: name, Schedule: "@every 1s", Func: f}
}

// jobs are some of these.
func (m *masters) jobs(n int, prefix string, there bool, f jobs.Func) (list []jobs.Job) {
	m.t.Helper()
	for i := range n {
		list = append(list, m.job(fmt.Sprint(prefix, "-", i), there, f))
	}
	return list
}

// roads are the networks of one node: one to the master that is going to be away, one to all others.
type roads struct{ away, others redistest.Net }

func (m *masters) over(r *roads) *redis.ClusterClient {
	client := m.ClientOver(m.t, func(addr string) *redistest.Net {
		if addr == m.away.Addr() {
			return &r.away
		}
		return &r.others
	})
	m.t.Cleanup(func() {
		r.away.Heal()
		r.others.Heal()
	})
	return client
}

// run runs a node in the namespace of these tests until the test ends.
func (m *masters) run(client redis.UniversalClient, cfg scheduler.Config, list ...jobs.Job) *scheduler.Node {
	m.t.Helper()
	cfg.Namespace, cfg.Partitions = clusterNamespace, clusterPartitions
	return runNode(m.t, client, cfg, list...)
}

// runNode runs a node that logs nothing until the test ends.
func runNode(t *testing.T, client redis.UniversalClient, cfg scheduler.Config, list ...jobs.Job) *scheduler.Node {
	t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	cfg.DrainTimeout, cfg.Logger = time.Second, slog.New(slog.DiscardHandler)
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
func (m *masters) ran(what string, j jobs.Job, s *sink, after time.Time) sunk {
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
func (m *masters) until(at time.Time, what ...string) time.Time {
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
