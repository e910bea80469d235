package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// TestRunOnACluster runs three nodes on a Redis Cluster, kills one of its masters in the middle, and wants every tick
// that is recorded to have run once, and the jobs of all partitions to go on.
func TestRunOnACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	env := []string{
		"ESCAPEMENT_REDIS_MODE=cluster", "ESCAPEMENT_REDIS_ADDRS=" + strings.Join(c.Options().Addrs[:2], ","),
		"ESCAPEMENT_REDIS_URL=redis:///0", "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0",
	}
	names := strings.Split("abcdefghijklmnop", "")
	jobs := secondly(names, "")
	var nodes []*process
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, nodeOf(t, env, name, jobs))
	}
	if said := nodes[0].field("node starting", "redis"); said != "the Cluster of "+strings.Join(c.Options().Addrs[:2], ",") {
		t.Errorf("the node says it uses %q", said)
	}
	all := func(after time.Time) func() bool {
		return func() bool {
			code, stdout, stderr := call(env, "", "runs", "list", "--outcome", "succeeded", "-o", "json")
			if code == exitUnreachable { // a server that has not heard of the new master yet
				return false
			}
			var runs []runJSON
			if err := json.Unmarshal([]byte(stdout), &runs); code != exitDone || err != nil {
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
	eventually(t, "all jobs run", all(time.Time{}))
	if list := decode[[]struct{ Name string }](t, env, "nodes", "list"); len(list) != 3 {
		t.Errorf("nodes list: %+v", list)
	}
	if code, stdout, stderr := call(env, "", "lock", "x", "--ttl", "3s", "--", "true"); code != exitDone {
		t.Errorf("a lock: exit %d, %s%s", code, stdout, stderr)
	}

	ctx, cancel := context.WithTimeout(t.Context(), within)
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
	eventually(t, "all jobs run again", all(promoted))
	t.Logf("all jobs ran again %s after it was killed", time.Since(killed).Round(time.Millisecond))
	for _, p := range nodes {
		p.signal(syscall.SIGTERM)
		p.exits(exitDone)
	}
	once(t, env)
}
