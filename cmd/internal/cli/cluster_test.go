package cli

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// TestRunOnACluster runs three nodes on a Redis Cluster and kills one of its masters in the middle.
// Every recorded tick must have run once, and the jobs of all partitions must go on.
func TestRunOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	env := []string{
		"ESCAPEMENT_REDIS_MODE=cluster", "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(c.Options().Addrs[:2], ","),
		"ESCAPEMENT_REDIS_URL=redis:///0", "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0",
	}
	names := strings.Split("abcdefghijklmnop", "")
	jobs := secondly(names, "")
	// Most of the nodes' addresses are of servers that take connections and send nothing.
	addrs := append(mute(t, 3), c.Options().Addrs[:2]...)
	theirs := append(slices.Clone(env), "ESCAPEMENT_REDIS_ADDRS="+strings.Join(addrs, ","))
	var nodes []*cmdtest.Running
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, nodeOf(t, theirs, name, jobs))
	}
	if said := nodes[0].Field("node starting", "redis"); said != "the Cluster of "+strings.Join(addrs, ",") {
		t.Errorf("the node says it uses %q", said)
	}
	all := func(after time.Time) func() bool {
		return func() bool {
			code, stdout, stderr := cmdtest.Call(env, "", "runs", "list", "--outcome", "succeeded", "-o", "json")
			if code == command.ExitUnreachable { // a server that still has the old master
				return false
			}
			var runs []runJSON
			if err := ops.Decode([]byte(stdout), &runs); code != command.ExitDone || err != nil {
				t.Fatalf("exit %d, %s, %v", code, stderr, err)
			}
			ran := map[string]bool{}
			for _, r := range runs {
				if r.Tick.After(after) {
					ran[r.Job] = true
				}
			}
			return len(ran) == len(names)
		}
	}
	cmdtest.Eventually(t, "all jobs run", all(time.Time{}))
	if list := cmdtest.Decode[[]struct{ Name string }](t, env, "nodes", "list"); len(list) != 3 {
		t.Errorf("nodes list: %+v", list)
	}
	if code, stdout, stderr := cmdtest.Call(theirs, "", "lock", "x", "--ttl", "5s", "--", "true"); code != command.ExitDone {
		t.Errorf("a lock: exit %d, %s%s", code, stdout, stderr)
	}

	ctx, cancel := context.WithTimeout(t.Context(), cmdtest.Within)
	defer cancel()
	const key = "{escapement:3}:jobs"
	old, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if _, err := c.Promoted(ctx, key, old); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	t.Logf("a replica took the place of the master after %s", time.Since(killed).Round(time.Millisecond))
	tools := slices.DeleteFunc(slices.Clone(c.Options().Addrs), func(addr string) bool { return addr == old.Addr() })
	env[1] = "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(tools, ",")
	cmdtest.Eventually(t, "all jobs run again", all(promoted))
	t.Logf("all jobs ran again %s after it was killed", time.Since(killed).Round(time.Millisecond))
	for _, p := range nodes {
		p.Signal(syscall.SIGTERM)
		p.Exits(command.ExitDone)
	}
	once(t, env)
}

// TestToolsBesideASilentMaster takes a master of a Cluster and its replica away, for good. Lists
// show the records of the reachable masters, and name the missing part; the exit code shows it too.
// Jobs of the reachable masters are operated as ever.
func TestToolsBesideASilentMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), cmdtest.Within)
	defer cancel()
	env := []string{
		"ESCAPEMENT_REDIS_MODE=cluster", "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(c.Options().Addrs, ","),
		"ESCAPEMENT_REDIS_URL=redis:///0", "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0",
	}
	all := strings.Split("abcdefghijklmnop", "")
	nodeOf(t, env, "n1", secondly(all, ""))
	home, err := c.Master(ctx, "{escapement}:control")
	if err != nil {
		t.Fatal(err)
	}
	away, job := home, ""
	for p := 0; away == home; p++ {
		if away, err = c.Master(ctx, fmt.Sprintf("{escapement:%d}:jobs", p)); err != nil {
			t.Fatal(err)
		}
	}
	there := func(job string) bool {
		master, err := c.Master(ctx, fmt.Sprintf("{escapement:%d}:jobs", ledgertest.Partition(job, 64)))
		if err != nil {
			t.Fatal(err)
		}
		return master == away
	}
	elsewhere := slices.DeleteFunc(slices.Clone(all), there)
	job = elsewhere[0]
	cmdtest.Eventually(t, "a job runs", func() bool {
		return len(cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--job", job)) > 0
	})
	replica, err := c.Replica(ctx, away)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockAt(ctx, t, c, home)
	for _, s := range c.Servers() { // else no request is answered when a master has no successor
		if err := s.Client(t).ConfigSet(ctx, "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*redistest.Server{replica, away} {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}

	var calls sync.WaitGroup // each takes seconds, which the silent master keeps it waiting
	defer calls.Wait()
	for _, what := range []string{"jobs", "runs", "locks"} {
		calls.Go(func() {
			code, stdout, stderr := cmdtest.Call(env, "", what, "list", "-o", "json")
			var list []struct{ Name, Job string }
			err := ops.Decode([]byte(stdout), &list)
			if err != nil || code != command.ExitUnreachable || !strings.Contains(stderr, "at "+away.Addr()) {
				t.Errorf("%s list: exit %d, %v, %s", what, code, err, stderr)
			}
			if least := map[string]int{"jobs": len(elsewhere), "runs": 1}[what]; len(list) < least || what == "jobs" && len(list) != least {
				t.Errorf("%s list: %d are listed", what, len(list))
			}
		})
	}
	for _, args := range [][]string{
		{"jobs", "pause", job, "--reason", "test"},
		{"runs", "list", "--job", job},
		{"nodes", "list"},
		{"nodes", "drain", "n1"},
		{"lock", "--ttl", "5s", lock, "--", "true"},
	} {
		calls.Go(func() {
			if code, stdout, stderr := cmdtest.Call(env, "", args...); code != command.ExitDone {
				t.Errorf("%v: exit %d, %s%s", args, code, stdout, stderr)
			}
		})
	}
}

// mute returns addresses of servers that take connections and send nothing.
func mute(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// lockAt is the name of a lock that lives at a master.
func lockAt(ctx context.Context, t *testing.T, c *redistest.Cluster, at *redistest.Server) string {
	t.Helper()
	for i := 0; ; i++ {
		name := fmt.Sprint("lock-", i)
		master, err := c.Master(ctx, "{escapement:lock:"+name+"}")
		if err != nil {
			t.Fatal(err)
		}
		if master == at {
			return name
		}
	}
}
