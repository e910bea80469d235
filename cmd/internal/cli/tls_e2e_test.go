package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

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
