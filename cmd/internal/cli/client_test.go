package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
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

// An error for a missing right in Redis names the right.
func TestLackingRights(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	env := []string{strings.Replace(p.Env[0], "redis://", "redis://u:p@", 1)}
	for rules, words := range map[string]string{
		"~other:* +@all":                 "lacks the keys ~{escapement}:* ~{escapement:*",
		"~* +@all -hgetall":              "lacks the command hgetall (+hgetall)",
		"~* +evalsha +eval +@read +time": "lacks a command that our scripts call",
	} {
		args := []any{"acl", "setuser", "u", "reset", "on", ">p", "&*"}
		for _, rule := range strings.Fields(rules) {
			args = append(args, rule)
		}
		if err := p.Client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		line := []string{"jobs", "list"}
		if strings.Contains(words, "scripts") {
			line = []string{"jobs", "run", "yearly"}
		}
		if code, _, said := cmdtest.Call(env, "", line...); code != command.ExitFailed || !strings.Contains(said, words) {
			t.Errorf("%s: exit %d, %s", rules, code, said)
		}
	}
}

// TestAnotherKindOfRedis expects a fault of the configuration, with the remedy, where the Redis
// that answers is of another kind than the address: no repetition helps.
func TestAnotherKindOfRedis(t *testing.T) {
	t.Parallel()
	one, c := redistest.Start(t).Addr(), redistest.StartCluster(t)
	home, err := c.Master(t.Context(), "{escapement}:control")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if s.Addr() == home.Addr() {
			continue // the key of the first request is there
		}
		wantMistaken(t, "redis://"+s.Addr(), "Redis at "+s.Addr()+" is a server of a Cluster: write redis+cluster://"+s.Addr()+"/ (or redis.mode: cluster)")
		break
	}
	wantMistaken(t, "redis+cluster://"+one+"/", "Redis at "+one+" is one server, and no Cluster: write redis://"+one+"/0")
	wantMistaken(t, "redis+sentinel://"+one+"/0?master_name=main", "is no sentinel: write the sentinels' own addresses")
}

func wantMistaken(t *testing.T, url, want string) {
	t.Helper()
	env := []string{"ESCAPEMENT_REDIS_URL=" + url, "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	for _, args := range [][]string{
		{"generations", "list"}, {"jobs", "list"}, {"run", "--config", testkit.Write(t, secondly([]string{"a"}, ""))},
		{"move", "plan", "--from", url, "--to", "redis://127.0.0.1:1"},
	} {
		if code, _, stderr := cmdtest.Call(env, "", args...); code != command.ExitConfig || !strings.Contains(stderr, want) {
			t.Errorf("%s %v: exit %d, %s; want %q", url, args, code, stderr, want)
		}
	}
}

// TestFirstContact: a node and every tool have the same words for an unusable Redis, and the same
// exit code.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	_, replicas := redistest.StartReplicas(t, 1)
	web, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	t.Cleanup(secure.Close)
	file := t.TempDir() + "/backup"
	const nodes, tools = "run", "jobs list|nodes list|backup FILE|ledger verify|move plan --to redis://127.0.0.1:1"
	for name, c := range map[string]struct {
		url      string
		commands string
		code     int
		want     string
	}{
		"a replica without the namespace": {"redis://" + replicas[0].Addr(), nodes, command.ExitUnreachable, "Redis at ADDR is a replica, which takes no writes"},
		"a replica, for a lock":           {"redis://" + replicas[0].Addr(), "lock a -- true", command.ExitUnreachable, "Redis at ADDR is a replica, which takes no writes"},
		"HTTP":                            {"redis://" + web.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "what listens at ADDR speaks HTTP, and is no Redis: correct the port or the host"},
		"an unknown authority":            {"rediss://" + secure.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "Redis at ADDR has a certificate of an authority that this machine does not know: name the authority's certificate"},
		"TLS, called without it":          {"redis://" + secure.Listener.Addr().String(), nodes + "|lock a -- true|" + tools, command.ExitConfig, "Redis at ADDR speaks TLS: write rediss and not redis"},
	} {
		_, addr, _ := strings.Cut(c.url, "://")
		env := []string{"ESCAPEMENT_REDIS_URL=" + c.url + "?dial_timeout=1m&read_timeout=1m", "ESCAPEMENT_HTTP_LISTEN="} // a handshake on a busy machine takes over a second
		for line := range strings.SplitSeq(c.commands, "|") {
			args := strings.Fields(strings.ReplaceAll(line, "FILE", file))
			if line == nodes {
				args = append(args, "--config", testkit.Write(t, secondly([]string{"a"}, "")))
			}
			code, stdout, stderr := cmdtest.Call(env, "", args...)
			if want := strings.ReplaceAll(c.want, "ADDR", addr); code != c.code || !strings.Contains(stderr, want) {
				t.Errorf("%s, %s: exit %d, %s%s\nwant %d, %s", name, line, code, stdout, stderr, c.code, want)
			}
		}
	}
}

// tlsOf returns a tls section for a client of a server with TLS.
func tlsOf(c *redistest.Certificates) string {
	return fmt.Sprintf("{ca_file: %s, cert_file: %s, key_file: %s}", c.CAFile, c.ClientCertFile, c.ClientKeyFile)
}

// TestRedisOverTLS runs tools and a node with Redis of each mode that accepts only TLS with a
// certificate.
func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	one := redistest.StartTLS(t, c, "--requirepass", "hunter2")
	sentinel, _ := redistest.StartTLSSentinel(t, c)
	cluster := redistest.StartTLSCluster(t, c)
	for name, redis := range map[string]string{
		"one":                  "url: 'rediss://:hunter2@" + one.Addr() + "/0?dial_timeout=20s', tls: " + tlsOf(c),
		"in the URL":           "url: 'rediss://:hunter2@" + one.Addr() + "/0?ca_file=" + c.CAFile + "&cert_file=" + c.ClientCertFile + "&key_file=" + c.ClientKeyFile + "'",
		"sentinel":             "mode: sentinel, addrs: [" + sentinel.Addr() + "], master_name: main, tls: " + tlsOf(c),
		"sentinel, by its URL": "url: 'rediss+sentinel://" + sentinel.Addr() + "/0?master_name=main', tls: " + tlsOf(c),
		"cluster":              "mode: cluster, addrs: [" + cluster.Addr() + "], tls: " + tlsOf(c),
	} {
		t.Run(name, func(t *testing.T) {
			file := testkit.Write(t, "redis: {"+redis+"}\n")
			cmdtest.Expect(t, nil, command.ExitNotFound, "has never been used", "jobs", "list", "--config", file)
			cmdtest.Expect(t, nil, command.ExitDone, "", "lock", "a", "--config", file, "--", "true")
		})
	}
	p := cmdtest.Start(t, nil, "run", "--config", testkit.Write(t, `
redis: {url: 'rediss://:hunter2@`+one.Addr()+`/0', tls: `+tlsOf(c)+`}
http: {listen: ""}
jobs: [{name: often, schedule: "@every 500ms", exec: {command: ["true"]}}]
`))
	p.Logged("run ended", `"outcome":"succeeded"`)
}

// TestTLSRefused: a fault in a setting of TLS is refused before anything is connected, with its
// key.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	fifo := "/dev/zero"
	for text, want := range map[string]string{
		"redis: {url: 'rediss://a', tls: {ca_file: /no/such}}":                                ":1: redis.tls.ca_file: cannot be read: stat /no/such",
		"redis: {url: 'rediss://a', tls: {ca_file: " + fifo + "}}":                            ":1: redis.tls.ca_file: cannot be read: read /dev/zero: is a device",
		"redis: {url: 'rediss://a', tls: {cert_file: " + c.ClientCertFile + "}}":              ":1: redis.tls.cert_file: has no key; name it with key_file",
		"redis: {mode: cluster, addrs: ['a:1'], tls: {key_file: " + c.ClientKeyFile + "}}":    ":1: redis.tls.key_file: belongs to no certificate",
		"redis: {url: 'redis://:hunter2@a', tls: " + tlsOf(c) + "}":                           ":1: redis.url: the URL has a scheme without TLS; write rediss:// in place of redis://",
		"redis: {tls: " + tlsOf(c) + "}":                                                      ":1: redis.tls: says nothing without redis.url",
		"redis: {url: 'rediss://:hunter2@a?ca_file=/no/such'}":                                ":1: redis.url: the URL has a ca_file that cannot be read",
		"redis: {next: 'rediss://:hunter2@a?ca_file=/no/such'}":                               ":1: redis.next: the URL has a ca_file that cannot be read",
		"locks: {driver: redis, servers: ['rediss://a'], tls: {ca_file: /no/such}}":           ":1: locks.tls.ca_file: cannot be read",
		"locks: {driver: redis, servers: ['redis://:hunter2@a'], tls: " + tlsOf(c) + "}":      ":1: locks.servers: the URL of server 1 has a scheme without TLS",
		"locks: {driver: redis, servers: ['redis://:hunter2@a'], user: u, password: hunter2}": ":1: locks.servers: the URL of server 1 has a user or a password, and locks.password is set too; keep one of them",
		"locks: {driver: redis, servers: ['redis://a'], user: u}":                             ":1: locks.user: has no password",
		"locks: {driver: redis, servers: ['redis://a'], schema: s}":                           ":1: locks.schema: is for the driver postgres, and locks.driver is redis",
		"locks: {password: hunter2}":                                                          ":1: locks.password: is for locks.servers, which is empty",
		"locks: {tls: " + tlsOf(c) + "}":                                                      ":1: locks.tls: is for locks.servers, which is empty",
	} {
		code, _, words := cmdtest.Call(nil, "", "config", "validate", testkit.Write(t, text))
		if code != command.ExitConfig || !strings.Contains(words, want) || strings.Contains(words, "hunter2") {
			t.Errorf("%s: exit %d, %s; want %q", text, code, words, want)
		}
	}
}

// TestLockWithCredentials: user, password and certificate of the locks' stores come from settings
// and files.
func TestLockWithCredentials(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, c, "--requirepass", "hunter2", "--user", "locks", "on", ">hunter3", "~*", "&*", "+@all")
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("hunter3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "ESCAPEMENT_LOCKS_DRIVER=redis", "ESCAPEMENT_LOCKS_SERVERS=rediss://" + server.Addr(),
		"ESCAPEMENT_LOCKS_TLS_CA_FILE=" + c.CAFile, "ESCAPEMENT_LOCKS_TLS_CERT_FILE=" + c.ClientCertFile, "ESCAPEMENT_LOCKS_TLS_KEY_FILE=" + c.ClientKeyFile,
		"ESCAPEMENT_LOCKS_USER=locks",
	}
	cmdtest.Expect(t, append(env, "ESCAPEMENT_LOCKS_PASSWORD_FILE="+secret), command.ExitDone, "", "lock", "a", "--", "true")
	code, _, words := cmdtest.Call(append(env, "ESCAPEMENT_LOCKS_PASSWORD=hunter4"), "", "lock", "a", "--", "true")
	if code == command.ExitDone || strings.Contains(words, "hunter") || !strings.Contains(words, "WRONGPASS") {
		t.Errorf("with a wrong password: exit %d, %s", code, words)
	}
	// A store that a flag names does not get the credentials of the configuration's store.
	other := redistest.Start(t)
	text := testkit.Write(t, "locks: {driver: redlock, servers: ['redis://a','redis://b','redis://c'], user: u, password: hunter2}\n")
	cmdtest.Expect(t, env[:1], command.ExitDone, "", "lock", "a", "--config", text, "--driver", "redis", "--servers", "redis://"+other.Addr(), "--", "true")
}
