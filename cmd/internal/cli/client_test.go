package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// TestEvictionIsToldOf: a node and a command under a lock warn when Redis may drop their records.
func TestEvictionIsToldOf(t *testing.T) {
	t.Parallel()
	const words = "allkeys-lru"
	redis := redistest.Start(t)
	if code, _, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", "lock", "a", "--", "true"); code != command.ExitDone || stderr != "" {
		t.Errorf("with the defaults: exit %d, %s", code, stderr)
	}
	for name, value := range map[string]string{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"} {
		if err := redis.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := cmdtest.Call(cmdtest.RedisEnv(redis), "", "lock", "a", "--", "true"); code != command.ExitDone || !strings.Contains(stderr, words) {
		t.Errorf("lock: exit %d, %s", code, stderr)
	}
	p := nodeOf(t, append(cmdtest.RedisEnv(redis), "ESCAPEMENT_HTTP_LISTEN="), "n1", secondly([]string{"a"}, ""))
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
	if !strings.Contains(p.Stderr.Text(), words) {
		t.Errorf("run: %s", p.Stderr.Text())
	}
}

// TestFullRedis: a Redis without memory is named so, with the remedy, also where nodes seem gone
// because they cannot write.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	if _, _, stderr := cmdtest.Call(p.Env, "", "jobs", "list"); stderr != "" {
		t.Errorf("with memory: %s", stderr)
	}
	if err := p.Client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	p.Wants(command.ExitDone, "no node", "Redis is full: nodes cannot say that they live, and nothing is claimed; raise its maxmemory", "jobs", "list")
	p.Wants(command.ExitDone, "NAME", "Redis is full", "nodes", "list")
	p.Wants(command.ExitUnreachable, "", "is full: raise its maxmemory", "jobs", "run", "yearly")
	code, stdout, _ := cmdtest.Call(p.Env, "", "doctor")
	server, rest, _ := strings.Cut(stdout, "\nerror ")
	if code != command.ExitFailed || !strings.Contains(server, "its memory is full") || !strings.Contains(rest, "no node can write that it lives") || strings.Contains(stdout, "start nodes") {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}
}

// TestReplicaWithoutNamespace: the error names the replica, not the missing namespace.
func TestReplicaWithoutNamespace(t *testing.T) {
	t.Parallel()
	_, replicas := redistest.StartReplicas(t, 1)
	url := "redis://" + replicas[0].Addr()
	for _, args := range [][]string{{"jobs", "list"}, {"jobs", "run", "a"}, {"backup", "-"}, {"move", "plan", "--to", "redis://127.0.0.1:1"}} {
		code, _, stderr := cmdtest.Call(nil, "", append(args, "--redis", url)...)
		if code != command.ExitUnreachable || !strings.Contains(stderr, "--redis: ") || !strings.Contains(stderr, "is a replica, which takes no writes: no such namespace") || strings.Contains(stderr, "start a node") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	code, stdout, _ := cmdtest.Call(nil, "", "doctor", "--redis", url)
	server, rest, _ := strings.Cut(stdout, "\nerror ")
	if code != command.ExitFailed || !strings.Contains(server, "it is a replica") || !strings.Contains(rest, "it is not on this replica") || strings.Contains(stdout, "start a node") {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}
}

// TestNoSuchDatabase: the number in the URL is a fault of the configuration.
func TestNoSuchDatabase(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr() + "/99"
	if code, _, stderr := cmdtest.Call(nil, "", "jobs", "list", "--redis", url); code != command.ExitConfig || !strings.Contains(stderr, "has no database 99: write a smaller number") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestPlainServerOverTLS: a server without TLS that is called with it is a fault of the URL.
func TestPlainServerOverTLS(t *testing.T) {
	t.Parallel()
	url := "rediss://" + redistest.Start(t).Addr()
	if code, _, stderr := cmdtest.Call(nil, "", "jobs", "list", "--redis", url); code != command.ExitConfig || !strings.Contains(stderr, "does not speak TLS: write redis and not rediss") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
