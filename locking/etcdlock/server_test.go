//go:build unix

package etcdlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking/etcdlock"
)

// server is an etcd process of a test's own, on the loopback, with its data in a directory of its own.
type server struct {
	dir    string
	args   []string
	client string // for clients: host:port, or a URL
	tls    *tls.Config
	cmd    *exec.Cmd
}

// program finds etcd. A missing one fails the test; it is never skipped.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		tb.Fatalf("etcd is not installed: run `apt-get install etcd-server` (or your system's like), or put etcd in PATH: %v", err)
	}
	return path
}

// startServers starts a cluster of n members and stops it at the end of the test.
func startServers(tb testing.TB, n int) []*server {
	tb.Helper()
	ports := freePorts(tb, 2*n)
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("e%d=http://127.0.0.1:%d", i, ports[n+i]))
	}
	servers := make([]*server, n)
	for i := range servers {
		dir, err := os.MkdirTemp("", "etcdlock-")
		if err != nil {
			tb.Fatal(err)
		}
		peer := fmt.Sprintf("http://127.0.0.1:%d", ports[n+i])
		client := fmt.Sprintf("127.0.0.1:%d", ports[i])
		s := &server{dir: dir, client: client, args: []string{
			"--name", fmt.Sprint("e", i), "--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new", "--logger", "zap", "--log-level", "warn",
		}}
		servers[i] = s
		tb.Cleanup(func() { s.remove(tb) })
		s.start(tb)
	}
	for _, s := range servers {
		s.ready(tb)
	}
	return servers
}

func freePorts(tb testing.TB, n int) (ports []int) {
	tb.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (s *server) start(tb testing.TB) {
	tb.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(program(tb), s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = endWithParent()
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
}

// ready waits until the server answers.
func (s *server) ready(tb testing.TB) {
	tb.Helper()
	c := connect(tb, etcdlock.ClientConfig{Endpoints: []string{s.client}, TLS: s.tls})
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	for {
		callCtx, done := context.WithTimeout(ctx, time.Second)
		_, err := c.Get(callCtx, "ready")
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			tb.Fatalf("etcd did not start: %v: %s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill ends the server at once, by its process.
func (s *server) kill(tb testing.TB) {
	tb.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Error(err)
	}
	_ = s.cmd.Wait() // it was killed
	s.cmd = nil
}

func (s *server) signal(tb testing.TB, sig os.Signal) {
	tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		tb.Fatal(err)
	}
}

func (s *server) remove(tb testing.TB) {
	s.kill(tb)
	if err := os.RemoveAll(s.dir); err != nil {
		tb.Error(err)
	}
}

// endpoints returns where clients reach the servers.
func endpoints(servers ...*server) (all []string) {
	for _, s := range servers {
		all = append(all, s.client)
	}
	return all
}

// connect returns a client that is closed at the end of the test.
func connect(tb testing.TB, cfg etcdlock.ClientConfig) *clientv3.Client {
	tb.Helper()
	c, err := etcdlock.Connect(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("close a client: %v", err)
		}
	})
	return c
}

var prefixes atomic.Int64

// newPrefix returns a prefix that no other test has.
func newPrefix() string { return fmt.Sprintf("kit%d", prefixes.Add(1)) }
