//go:build unix

package etcdlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// The environment of a child process that holds a lock.
const (
	holderEndpoint = "ETCDLOCK_TEST_ENDPOINT"
	holderPrefix   = "ETCDLOCK_TEST_PREFIX"
)

// holdUntilAsked is the child: it holds lock a, and answers each line of in with its first look at
// the lease.
func holdUntilAsked(in io.Reader, out io.Writer) error {
	c, err := etcdlock.Connect(etcdlock.ClientConfig{Endpoints: []string{os.Getenv(holderEndpoint)}})
	if err != nil {
		return err
	}
	l := etcdlock.New(c, etcdlock.Config{Prefix: os.Getenv(holderPrefix)})
	lease, err := l.Acquire(context.Background(), "a", locking.Options{TTL: 3 * time.Second, Holder: "child"})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "held", lease.Token()); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		err := lease.Context().Err()
		if _, err := fmt.Fprintln(out, err != nil, errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost), lease.Valid()); err != nil {
			return err
		}
	}
	return nil
}

// TestStoppedProcess stops a process that holds a lock, for longer than the lease.
func TestStoppedProcess(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holderEndpoint+"="+s.client, holderPrefix+"="+prefix)
	child.SysProcAttr = endWithParent()
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed
	})
	lines := bufio.NewReader(out)
	say := func(what string) string {
		if _, err := io.WriteString(in, what); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	var token locking.Token
	if held := say(""); !scan(held, "held %d", &token) {
		t.Fatalf("the child says %q", held)
	}
	if got := say("look\n"); got != "false false true" {
		t.Fatalf("the child's lease: ended, lost, valid: %s", got)
	}

	signal(t, child, syscall.SIGSTOP)
	d, _ := driver(t, prefix, s)
	l := locking.New(d, locking.Config{})
	defer l.Close()
	lease, err := l.Acquire(t.Context(), "a", locking.Options{Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, lease)
	if lease.Token() <= token {
		t.Errorf("token %d after the stopped holder's %d", lease.Token(), token)
	}
	signal(t, child, syscall.SIGCONT)
	if got := say("look\n"); got != "true true false" {
		t.Errorf("the child's lease after its stop: ended, lost, valid: %s", got)
	}
}

func scan(s, format string, out ...any) bool {
	n, err := fmt.Sscanf(s, format, out...)
	return err == nil && n == len(out)
}

func signal(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func release(t *testing.T, lease *locking.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); err != nil {
		t.Error(err)
	}
}
