//go:build unix

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tick is the servers' tickTime. Sessions end up to one tick late.
const tick = 100 * time.Millisecond

// zooServer is a ZooKeeper process of this test's own, on the loopback interface.
type zooServer struct {
	dir    string
	port   int // of clients
	flags  []string
	cmd    *exec.Cmd
	exited chan struct{}
}

// classPath is the Java class path of the server, from Debian's packages.
func classPath() (string, error) {
	const home = "/usr/share/java/"
	var jars []string
	for _, name := range []string{"zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "slf4j-simple.jar", "snappy-java.jar", "metrics-core.jar"} {
		if _, err := os.Stat(home + name); err != nil {
			return "", fmt.Errorf("ZooKeeper is not installed: run `apt-get install zookeeper`: %w", err)
		}
		jars = append(jars, home+name)
	}
	netty, _ := filepath.Glob(home + "netty-*.jar") // the pattern is well formed
	return strings.Join(append(jars, netty...), ":"), nil
}

// newServer prepares server number id of an ensemble; peers are its lines "server.N=...", none for a server alone.
func newServer(dir string, id int, port int, peers []string, flags ...string) (*zooServer, error) {
	cfg := append([]string{
		"dataDir=" + filepath.Join(dir, "data"),
		fmt.Sprint("clientPort=", port), "clientPortAddress=127.0.0.1", "maxClientCnxns=0",
		fmt.Sprint("tickTime=", tick.Milliseconds()), "minSessionTimeout=200", "maxSessionTimeout=90000",
		"initLimit=50", "syncLimit=10", "admin.enableServer=false", "4lw.commands.whitelist=*",
	}, peers...)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return nil, err
	}
	files := map[string]string{"zoo.cfg": strings.Join(cfg, "\n") + "\n", "data/myid": strconv.Itoa(id)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return &zooServer{dir: dir, port: port, flags: flags}, nil
}

// start starts the process; ready waits for it.
func (z *zooServer) start() error {
	path, err := classPath()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(z.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.preAllocSize=1024", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dznode.container.checkIntervalMs=500", "-Dznode.container.maxPerMinute=600000",
	}, z.flags...)
	args = append(args, "-cp", path, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(z.dir, "zoo.cfg"))
	cmd := exec.Command("java", args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, withParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { // ends with the process
		_ = cmd.Wait()
		close(exited)
	}()
	z.cmd, z.exited = cmd, exited
	return nil
}

func (z *zooServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(z.port)) }

// ready returns when the server serves clients.
func (z *zooServer) ready() error {
	for start := time.Now(); time.Since(start) < 60*time.Second; <-time.After(20 * time.Millisecond) {
		if z.mode() != "" {
			return nil
		}
		select {
		case <-z.exited:
			return errors.New("ZooKeeper has ended: " + z.said())
		default:
		}
	}
	return errors.New("ZooKeeper is not ready within a minute: " + z.said())
}

func (z *zooServer) said() string {
	said, _ := os.ReadFile(filepath.Join(z.dir, "log"))
	return string(said)
}

// ask sends one of ZooKeeper's commands of four letters.
func (z *zooServer) ask(command string) string {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", z.addr())
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, command)
	said, _ := io.ReadAll(c)
	return string(said)
}

// mode is standalone, leader or follower; "" when the server does not serve.
func (z *zooServer) mode() string {
	_, after, _ := strings.Cut(z.ask("srvr"), "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

// kill ends the process at once, and returns when it has ended.
func (z *zooServer) kill() {
	if z.cmd == nil {
		return
	}
	_ = z.cmd.Process.Signal(syscall.SIGCONT)
	_ = z.cmd.Process.Kill()
	<-z.exited
	z.cmd = nil
}

func (z *zooServer) signal(s syscall.Signal) { _ = z.cmd.Process.Signal(s) }

// fast leaves out the disk, for tests that do not restart a server.
const fast = "-Dzookeeper.forceSync=no"

func startAlone(dir string, flags ...string) (*zooServer, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	z, err := newServer(dir, 1, ports[0], nil, flags...)
	if err != nil {
		return nil, err
	}
	if err := z.start(); err != nil {
		return nil, err
	}
	if err := z.ready(); err != nil {
		z.kill()
		return nil, err
	}
	return z, nil
}

// startServer starts a server for one test.
func startServer(tb testing.TB, flags ...string) *zooServer {
	tb.Helper()
	z, err := startAlone(tb.TempDir(), flags...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(z.kill)
	return z
}

// ensemble is three servers.
type ensemble []*zooServer

func startEnsemble(tb testing.TB, flags ...string) ensemble {
	tb.Helper()
	return startEnsembleFar(tb, nil, flags...)
}

// startEnsembleFar puts proxies between server 0 and the other servers, when these lead. An election with them may take long.
func startEnsembleFar(tb testing.TB, far *proxies, flags ...string) ensemble {
	tb.Helper()
	ports, err := freePorts(9)
	if err != nil {
		tb.Fatal(err)
	}
	var e ensemble
	for i := range 3 {
		var peers []string
		for peer := range 3 {
			quorum := ports[3+peer]
			if far != nil && i == 0 && peer > 0 {
				quorum = far.start(tb, quorum)
			}
			peers = append(peers, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", peer+1, quorum, ports[6+peer]))
		}
		z, err := newServer(tb.TempDir(), i+1, ports[i], peers, flags...)
		if err == nil {
			err = z.start()
		}
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(z.kill)
		e = append(e, z)
	}
	for _, z := range e {
		if err := z.ready(); err != nil {
			tb.Fatal(err)
		}
	}
	return e
}

func (e ensemble) addrs() (addrs []string) {
	for _, z := range e {
		addrs = append(addrs, z.addr())
	}
	return addrs
}

// leader returns the leader, and the other servers.
func (e ensemble) leader(tb testing.TB) (leader *zooServer, others ensemble) {
	tb.Helper()
	for start := time.Now(); time.Since(start) < 30*time.Second; <-time.After(20 * time.Millisecond) {
		leader, others = nil, nil
		for _, z := range e {
			if z.mode() == "leader" {
				leader = z
			} else {
				others = append(others, z)
			}
		}
		if leader != nil {
			return leader, others
		}
	}
	tb.Fatal("no leader within 30 s")
	return nil, nil
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that no port comes twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// shared is the server of most tests, started by the first that wants it.
var shared struct {
	sync.Mutex
	dir    string
	server *zooServer
	err    error
}

// theServer returns the shared server. A missing ZooKeeper fails the test; it is never skipped.
func theServer(tb testing.TB) *zooServer {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		if shared.dir, shared.err = os.MkdirTemp("", "zklock-"); shared.err == nil {
			shared.server, shared.err = startAlone(shared.dir, fast)
		}
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}
