package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// TestEvictionIsToldOf: a node and a command under a lock warn when Redis may drop their records.
func TestEvictionIsToldOf(t *testing.T) {
	t.Parallel()
	const words = "allkeys-lru"
	redis := redistest.Start(t)
	if code, _, stderr := call(at(redis), "", "lock", "a", "--", "true"); code != exitDone || stderr != "" {
		t.Errorf("with the defaults: exit %d, %s", code, stderr)
	}
	for name, value := range map[string]string{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"} {
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := call(at(redis), "", "lock", "a", "--", "true"); code != exitDone || !strings.Contains(stderr, words) {
		t.Errorf("lock: exit %d, %s", code, stderr)
	}
	p := nodeOf(t, append(at(redis), "ESCAPEMENT_HTTP_LISTEN="), "n1", secondly([]string{"a"}, ""))
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	if !strings.Contains(p.stderr.text(), words) {
		t.Errorf("run: %s", p.stderr.text())
	}
}

// TestFullRedis: a Redis without memory is named so, with the remedy, also where nodes seem gone
// because they cannot write.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	p := plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	if _, _, stderr := call(p.env, "", "jobs", "list"); stderr != "" {
		t.Errorf("with memory: %s", stderr)
	}
	if err := p.client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	p.wants(exitDone, "no node", "Redis is full: nodes cannot say that they live, and nothing is claimed; raise its maxmemory", "jobs", "list")
	p.wants(exitDone, "NAME", "Redis is full", "nodes", "list")
	p.wants(exitUnreachable, "", "is full: raise its maxmemory", "jobs", "run", "yearly")
	code, stdout, _ := call(p.env, "", "doctor")
	server, rest, _ := strings.Cut(stdout, "\nerror ")
	if code != exitFailed || !strings.Contains(server, "its memory is full") || !strings.Contains(rest, "no node can write that it lives") || strings.Contains(stdout, "start nodes") {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}
}

// TestReplicaWithoutNamespace: the error names the replica, not the missing namespace.
func TestReplicaWithoutNamespace(t *testing.T) {
	t.Parallel()
	_, replicas := redistest.StartReplicas(t, 1)
	url := "redis://" + replicas[0].Addr()
	for _, args := range [][]string{{"jobs", "list"}, {"jobs", "run", "a"}, {"backup", "-"}, {"move", "plan", "--to", "redis://127.0.0.1:1"}} {
		code, _, stderr := call(nil, "", append(args, "--redis", url)...)
		if code != exitUnreachable || !strings.Contains(stderr, "--redis: ") || !strings.Contains(stderr, "is a replica, which takes no writes: no such namespace") || strings.Contains(stderr, "start a node") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	code, stdout, _ := call(nil, "", "doctor", "--redis", url)
	server, rest, _ := strings.Cut(stdout, "\nerror ")
	if code != exitFailed || !strings.Contains(server, "it is a replica") || !strings.Contains(rest, "it is not on this replica") || strings.Contains(stdout, "start a node") {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}
}

// TestNoSuchDatabase: the number in the URL is a fault of the configuration.
func TestNoSuchDatabase(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr() + "/99"
	if code, _, stderr := call(nil, "", "jobs", "list", "--redis", url); code != exitConfig || !strings.Contains(stderr, "has no database 99: write a smaller number") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestPlainServerOverTLS: a server without TLS that is called with it is a fault of the URL.
func TestPlainServerOverTLS(t *testing.T) {
	t.Parallel()
	url := "rediss://" + redistest.Start(t).Addr()
	if code, _, stderr := call(nil, "", "jobs", "list", "--redis", url); code != exitConfig || !strings.Contains(stderr, "does not speak TLS: write redis and not rediss") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
