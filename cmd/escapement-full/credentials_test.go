//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// serve runs a server for one test, and returns when it is ready.
func serve(t *testing.T, cmd *exec.Cmd, ready func(ctx context.Context) error) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s is not installed, or does not start: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(log)
			t.Fatalf("%s is not ready: %v: %s", cmd.Path, err, said)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// take takes a lock with a driver, as `escapement lock` does.
func take(t *testing.T, driver lockstore.Driver, c lockstore.Config) error {
	t.Helper()
	c.Namespace, c.Margin, c.Logger = "escapement", time.Second, slog.New(slog.DiscardHandler)
	locker, end, err := driver(c)
	if err != nil {
		return err
	}
	defer end()
	lease, err := locker.Acquire(t.Context(), "a", locking.Options{TTL: time.Minute, Wait: 20 * time.Second})
	if err != nil {
		return err
	}
	return lease.Release(t.Context())
}

// refused expects an error with the words and without a password.
func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%s: %v; want %q", what, err, want)
	}
}

// client is a tls section with a certificate.
func client(c *redistest.Certificates) redisconn.TLS {
	return redisconn.TLS{CAFile: c.CAFile, CertFile: c.ClientCertFile, KeyFile: c.ClientKeyFile}
}

// TestEtcdCredentials uses a member that requires a certificate and, later, a user.
func TestEtcdCredentials(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCertificates(t)
	at, peer := "https://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	security, err := client(certs).Config()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, TLS: security})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	cmd := exec.Command("etcd", "--data-dir", t.TempDir(), "--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--logger", "zap", "--log-level", "warn",
		"--cert-file", certs.ServerCertFile, "--key-file", certs.ServerKeyFile, "--client-cert-auth", "--trusted-ca-file", certs.CAFile)
	cmd.SysProcAttr = endWithParent()
	serve(t, cmd, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := admin.Get(ctx, "ready")
		return err
	})
	c := lockstore.Config{Servers: []string{at}, TLS: client(certs)}
	if err := take(t, etcd, c); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	ctx := t.Context()
	_, root := admin.UserAdd(ctx, "root", "hunter1")
	_, grant := admin.UserGrantRole(ctx, "root", "root")
	_, added := admin.UserAdd(ctx, "locks", "hunter2")
	_, role := admin.RoleAdd(ctx, "locks")
	_, may := admin.RoleGrantPermission(ctx, "locks", "escapement", clientv3.GetPrefixRangeEnd("escapement"), clientv3.PermissionType(clientv3.PermReadWrite))
	_, has := admin.UserGrantRole(ctx, "locks", "locks")
	_, on := admin.AuthEnable(ctx)
	if err := errors.Join(root, grant, added, role, may, has, on); err != nil {
		t.Fatal(err)
	}
	c.User, c.Password = "locks", "hunter2"
	if err := take(t, etcd, c); err != nil {
		t.Errorf("with a user: %v", err)
	}
	c.Password = "hunter3"
	refused(t, "with a wrong password", take(t, etcd, c), "authentication failed")
	c.User, c.Password = "", ""
	refused(t, "without a user", take(t, etcd, c), "")
}

// TestZooKeeperCredentials uses a server with TLS, and locks that belong to one user.
func TestZooKeeperCredentials(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCertificates(t)
	dir, secure, plain := t.TempDir(), freePort(t), freePort(t)
	store := filepath.Join(dir, "store.pem")
	var both []byte
	for _, name := range []string{certs.ServerKeyFile, certs.ServerCertFile} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, data...)
	}
	settings := strings.Join([]string{
		"dataDir=" + dir, "clientPort=" + plain, "clientPortAddress=127.0.0.1", "secureClientPort=" + secure, "secureClientPortAddress=127.0.0.1",
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory", "tickTime=200", "maxSessionTimeout=90000", "admin.enableServer=false",
		"ssl.keyStore.location=" + store, "ssl.keyStore.type=PEM", "ssl.trustStore.location=" + certs.CAFile, "ssl.trustStore.type=PEM", "ssl.clientAuth=need",
	}, "\n")
	if err := errors.Join(os.WriteFile(store, both, 0o600), os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(settings+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	const home = "/usr/share/java/"
	netty, _ := filepath.Glob(home + "netty-*.jar") // the pattern is well formed
	var jars []string
	for _, name := range []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "snappy-java", "metrics-core"} {
		jars = append(jars, home+name+".jar")
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", strings.Join(append(jars, netty...), ":"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
	cmd.SysProcAttr = endWithParent()
	admin, _, err := zk.Connect([]string{"127.0.0.1:" + plain}, 20*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	serve(t, cmd, func(context.Context) error { _, _, err := admin.Exists("/"); return err })

	c := lockstore.Config{Servers: []string{"127.0.0.1:" + secure}, TLS: client(certs), User: "locks", Password: "hunter2"}
	if err := take(t, zookeeper, c); err != nil {
		t.Fatalf("with a certificate and a user: %v", err)
	}
	if err := admin.AddAuth("digest", []byte("locks:hunter2")); err != nil {
		t.Fatal(err)
	}
	acls, _, err := admin.GetACL("/escapement/locks")
	if err != nil || len(acls) != 2 || !slices.ContainsFunc(acls, func(a zk.ACL) bool { return a.Scheme == "digest" && strings.HasPrefix(a.ID, "locks:") }) ||
		!slices.ContainsFunc(acls, func(a zk.ACL) bool { return a.Scheme == "x509" && a.ID == "CN=client" }) {
		t.Errorf("the locks belong to %v, %v; want the user and the owner of the certificate", acls, err)
	}
	c.TLS.CertFile, c.TLS.KeyFile = certs.Issue(t, "other", "other")
	if err := take(t, zookeeper, c); err != nil {
		t.Errorf("the same user with another certificate: %v", err)
	}
	c.Password = "hunter3"
	refused(t, "with a wrong password", take(t, zookeeper, c), "not authenticated")
	c.User, c.Password = "", ""
	refused(t, "without a user", take(t, zookeeper, c), "not authenticated")
}

// silent drops the ZooKeeper library's log.
type silent struct{}

func (silent) Printf(string, ...any) {}

// TestPostgresCredentials uses a server that requires a user, a password, TLS and a certificate.
func TestPostgresCredentials(t *testing.T) {
	t.Parallel()
	certs := redistest.NewCertificates(t)
	port := freePort(t)
	var account *syscall.Credential
	own := func(string) error { return nil }
	if os.Geteuid() == 0 { // PostgreSQL refuses root
		who, err := user.Lookup("postgres")
		if err != nil {
			t.Fatalf("PostgreSQL refuses to run as root, and there is no user postgres: %v", err)
		}
		uid, _ := strconv.Atoi(who.Uid) // numbers, on unix
		gid, _ := strconv.Atoi(who.Gid)
		account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		own = func(name string) error { return os.Chown(name, uid, gid) }
	}
	dir, err := os.MkdirTemp("", "escapement-postgres-") // the test's own folder is closed to another user
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = own(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	security, err := client(certs).Config()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgx.ParseConfig("postgres://postgres:hunter1@127.0.0.1:" + port + "/postgres?connect_timeout=5")
	if err != nil {
		t.Fatal(err)
	}
	security.ServerName = "127.0.0.1"
	cfg.TLSConfig, cfg.Fallbacks = security, nil
	admin := func(ctx context.Context, statement string) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, statement)
		return err
	}
	runPostgres(t, dir, port, account, own, certs, func(ctx context.Context) error { return admin(ctx, "SELECT 1") })
	if err := admin(t.Context(), "CREATE ROLE locks LOGIN PASSWORD 'hunter2'; CREATE SCHEMA own AUTHORIZATION locks"); err != nil {
		t.Fatal(err)
	}
	c := lockstore.Config{Servers: []string{"postgres://127.0.0.1:" + port + "/postgres"}, User: "locks", Password: "hunter2", Schema: "own", TLS: client(certs)}
	if err := take(t, postgres, c); err != nil {
		t.Errorf("with a certificate and a user: %v", err)
	}
	if err := admin(t.Context(), "SELECT 1 FROM own.escapement_locks"); err != nil {
		t.Errorf("the tables are not in their schema: %v", err)
	}
	c.Password = "hunter3"
	refused(t, "with a wrong password", take(t, postgres, c), "password authentication failed")
	c.Password, c.TLS = "hunter2", redisconn.TLS{CAFile: certs.CAFile}
	refused(t, "without a certificate", take(t, postgres, c), "certificate")
	c.TLS.CAFile = redistest.NewCertificates(t).CAFile
	refused(t, "of an authority that is not trusted", take(t, postgres, c), "certificate signed by unknown authority")
}

// runPostgres starts a server that admits only clients with TLS, a certificate and a password.
func runPostgres(t *testing.T, dir, port string, account *syscall.Credential, own func(string) error, certs *redistest.Certificates, ready func(ctx context.Context) error) {
	t.Helper()
	program := func(name string) string {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
		if len(found) == 0 {
			return name
		}
		return slices.Max(found)
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(program(name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, endWithParent()
		if account != nil {
			if cmd.SysProcAttr == nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{}
			}
			cmd.SysProcAttr.Credential = account
		}
		return cmd
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), own(name)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	copied := func(name, from string) string {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		return file(name, string(data))
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-A", "scram-sha-256", "-U", "postgres", "--pwfile", file("password", "hunter1\n"), "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("PostgreSQL is not installed, or initdb fails: %v: %s", err, out)
	}
	rules := file("hba.conf", "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n")
	cmd := command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "hba_file="+rules,
		"-c", "ssl=on", "-c", "ssl_cert_file="+copied("cert.pem", certs.ServerCertFile), "-c", "ssl_key_file="+copied("key.pem", certs.ServerKeyFile), "-c", "ssl_ca_file="+copied("ca.pem", certs.CAFile))
	serve(t, cmd, ready)
}

// TestCredentialsRefused: contradictory settings are refused before a connection, and the error
// hides the password.
func TestCredentialsRefused(t *testing.T) {
	certs := redistest.NewCertificates(t)
	for name, c := range map[string]struct {
		driver lockstore.Driver
		c      lockstore.Config
		want   string
	}{
		"no user":           {zookeeper, lockstore.Config{Servers: []string{"a:1"}, Password: "hunter2"}, "set locks.user"},
		"no user of etcd":   {etcd, lockstore.Config{Servers: []string{"http://a:1"}, Password: "hunter2"}, "set locks.user"},
		"two passwords":     {etcd, lockstore.Config{Servers: []string{"http://a:1", "http://u:hunter2@b:1"}, User: "u", Password: "hunter3"}, "server 2 has a password"},
		"http":              {etcd, lockstore.Config{Servers: []string{"http://a:1"}, TLS: client(certs)}, "write https"},
		"a file":            {etcd, lockstore.Config{Servers: []string{"https://a:1"}, TLS: redisconn.TLS{CAFile: "/no/such"}}, "ca_file"},
		"a file of a tree":  {zookeeper, lockstore.Config{Servers: []string{"a:1"}, TLS: redisconn.TLS{CAFile: "/no/such"}}, "ca_file"},
		"a user of its own": {postgres, lockstore.Config{Servers: []string{"postgres://u@h/d"}, User: "u"}, "has a user"},
		"its password":      {postgres, lockstore.Config{Servers: []string{"postgres://u:hunter2@h/d"}, Password: "hunter3"}, "has a password"},
		"its parameter":     {postgres, lockstore.Config{Servers: []string{"postgres://h/d?password=hunter2"}, Password: "hunter3"}, "has a password"},
		"its sslmode":       {postgres, lockstore.Config{Servers: []string{"postgres://h/d?sslmode=disable"}, TLS: client(certs)}, "has sslmode"},
	} {
		c.c.Margin, c.c.Logger, c.c.Check = time.Second, slog.New(slog.DiscardHandler), true
		_, _, err := c.driver(c.c)
		refused(t, name, err, c.want)
	}
}
