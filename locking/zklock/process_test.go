//go:build unix

package zklock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

const (
	childServer = "ZKLOCK_TEST_SERVER" // the environment of a child that holds a lock
	childTTL    = 2 * time.Second
)

// holdIfChild makes this process a holder of a lock, if a test has started it for that. It prints
// "held", and then, for each line that it reads, the first look at its context.
func holdIfChild() {
	server := os.Getenv(childServer)
	if server == "" {
		return
	}
	c := zklock.NewClient([]string{server}, zklock.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	l := zklock.New(c, zklock.Config{Root: "/process", Margin: margin, Logger: slog.New(slog.DiscardHandler)})
	lease, err := l.Acquire(context.Background(), "a", locking.Options{TTL: childTTL})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "held", lease.Token())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ended := lease.Context().Err()
		_, _ = fmt.Fprintln(os.Stdout, "ended", ended != nil, errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost))
	}
	os.Exit(0)
}

// child is a process that holds lock "a".
type child struct {
	cmd   *exec.Cmd
	say   func(line string)
	lines chan string
	token locking.Token
}

func startChild(t *testing.T, server string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childServer+"="+server)
	cmd.SysProcAttr, cmd.Stderr = withParent(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, lines: make(chan string, 10), say: func(line string) { _, _ = fmt.Fprintln(in, line) }}
	read := make(chan struct{})
	go func() { // ends with the process
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	if _, err := fmt.Sscanf(c.line(t), "held %d", &c.token); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-c.lines:
		return strings.TrimSpace(line)
	case <-time.After(20 * time.Second):
		t.Fatal("the child says nothing")
		return ""
	}
}

// TestStoppedHolder stops a process that holds a lock for longer than its session. Another gets the lock; when the process goes
// on, its context has ended at the first look.
func TestStoppedHolder(t *testing.T) {
	z := theServer(t)
	holder := startChild(t, z.addr())
	stopped := time.Now()
	if err := holder.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l, _ := locker(t, "/process", z.addr())
	lease, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the lock of the stopped process was free after %s", time.Since(stopped))
	if lease.Token() <= holder.token {
		t.Errorf("token %d after %d", lease.Token(), holder.token)
	}
	holder.say("look") // before it goes on
	if err := holder.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if said := holder.line(t); said != "ended true true" {
		t.Errorf("at its first look after the stop the holder's context says %q; want that it has ended, with ErrLeaseLost", said)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKilledHolder measures how long a waiter waits for a process that was killed: the session
// time-out, which is 1.5 times the TTL or a little more.
func TestKilledHolder(t *testing.T) {
	z := theServer(t)
	holder := startChild(t, z.addr())
	killed := time.Now()
	if err := holder.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l, _ := locker(t, "/process", z.addr())
	lease, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(killed)
	t.Logf("the lock of the killed process was free after %s", took)
	if most := childTTL*3/2 + 2*tick + time.Second; took > most {
		t.Errorf("the lock was free after %s; want %s at most", took, most)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
