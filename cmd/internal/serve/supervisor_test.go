package serve

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

// listenAsSystemd is the end of the socket that systemd has. The name is a path, or begins with @.
func listenAsSystemd(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// heardState is the next datagram.
func heardState(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(cmdtest.Within)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// watchedNode registers when the test sets it.
type watchedNode struct {
	fakeNode
	registered atomic.Bool
	asked      atomic.Int64
}

func (n *watchedNode) Registered() bool { return n.registered.Load() }
func (n *watchedNode) Ready() error     { n.asked.Add(1); return n.fakeNode.Ready() }

// TestSupervisor reports a node's states, over a path and over an abstract socket.
func TestSupervisor(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@escapement-" + strconv.Itoa(os.Getpid())} {
		if name[0] == '@' && runtime.GOOS != "linux" {
			continue
		}
		systemd := listenAsSystemd(t, name)
		s := supervisorOf(map[string]string{notifySocket: name, watchdogUsec: "2000", watchdogPID: strconv.Itoa(os.Getpid())})
		first, second := &watchedNode{}, &watchedNode{}
		first.registered.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- watch(ctx, s, slog.New(slog.DiscardHandler), []*watchedNode{first, second}) }()
		second.registered.Store(true)
		if got := heardState(t, systemd); got != "READY=1" {
			t.Errorf("%s: first %q", name, got)
		}
		for range 2 {
			if got := heardState(t, systemd); got != "WATCHDOG=1" {
				t.Errorf("%s: while it runs %q", name, got)
			}
		}
		if second.asked.Load() == 0 {
			t.Error("the watchdog asks no node: one that hangs would go unnoticed")
		}
		cancel()
		got := heardState(t, systemd)
		for got == "WATCHDOG=1" {
			got = heardState(t, systemd)
		}
		if got != "STOPPING=1" {
			t.Errorf("%s: at the end %q", name, got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestSupervisorIsNotTold: before all nodes have registered only the stop is reported. A supervisor
// that does not listen harms no node.
func TestSupervisorIsNotTold(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	systemd := listenAsSystemd(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := watch(ctx, supervisorOf(map[string]string{notifySocket: name, watchdogUsec: "2000"}), slog.New(slog.DiscardHandler), []*watchedNode{{}}); err != nil {
		t.Error(err)
	}
	if got := heardState(t, systemd); got != "STOPPING=1" {
		t.Errorf("a node that never registered: %q", got)
	}

	var log strings.Builder
	gone := supervisorOf(map[string]string{notifySocket: name + ".gone"})
	if err := watch(ctx, gone, slog.New(slog.NewTextHandler(&log, nil)), []*watchedNode{{}}); err != nil || !strings.Contains(log.String(), "cannot be told") {
		t.Errorf("nobody listens: %v, log %q", err, log.String())
	}
}

// TestSupervisorOf reads systemd's variables, and keeps them from commands that the node runs.
func TestSupervisorOf(t *testing.T) {
	t.Setenv(notifySocket, "/run/x")
	if s := supervisorOf(nil); s != nil {
		t.Errorf("without a socket: %+v", s)
	}
	if _, ok := os.LookupEnv(notifySocket); ok {
		t.Error("commands inherit " + notifySocket)
	}
	me := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0}, {"30000000", "", 15 * time.Second}, {"30000000", me, 15 * time.Second}, {"30000000", "1", 0}, {"-5", me, 0}, {"soon", me, 0},
	} {
		s := supervisorOf(map[string]string{notifySocket: "/run/x", watchdogUsec: tt.usec, watchdogPID: tt.pid})
		if s.period != tt.want {
			t.Errorf("%+v: %v", tt, s.period)
		}
	}
}

// TestRunTellsSystemd: a real node is ready when it has registered, and its commands do not get the
// socket.
func TestRunTellsSystemd(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	systemd := listenAsSystemd(t, name)
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_NODE_NAME=a1", notifySocket + "=" + name}
	p := cmdtest.Start(t, env, "run", "--config", testkit.Write(t, `
jobs:
  - name: sees
    schedule: "@every 500ms"
    exec: {command: [sh, -c, 'test -z "$NOTIFY_SOCKET"']}
`))
	if got := heardState(t, systemd); got != "READY=1" {
		t.Errorf("first %q", got)
	}
	p.Logged("run ended", `"outcome":"succeeded"`)
	url := p.Field("node starting", "http")
	if code, stdout, stderr := cmdtest.Call(nil, "", "health", "--ready", "--api", url); code != command.ExitDone {
		t.Errorf("a node that works is not ready: exit %d, %s%s", code, stdout, stderr)
	}
	p.Signal(syscall.SIGTERM)
	if got := heardState(t, systemd); got != "STOPPING=1" {
		t.Errorf("then %q", got)
	}
	p.Exits(command.ExitDone)
}
