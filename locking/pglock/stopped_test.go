//go:build unix

package pglock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/pglock"
)

// The environment of a process that holds a lock instead of running tests.
const (
	holderDSN       = "PGLOCK_TEST_DSN"
	holderNamespace = "PGLOCK_TEST_NAMESPACE"
)

// holdAndLook acquires lock x, prints "held", and looks at its lease for each line of stdin. It
// returns the exit code.
func holdAndLook(dsn, namespace string) int {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	defer pool.Close()
	l := pglock.New(pool, pglock.Config{Namespace: namespace, Margin: crewMargin})
	defer l.Close()
	lease, err := l.Acquire(ctx, "x", locking.Options{TTL: crewTTL})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "held")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		err := lease.Context().Err()
		fmt.Fprintln(os.Stdout, "ended:", err != nil, "lost:", errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost), "valid:", lease.Valid())
	}
	return 0
}

// TestStoppedHolder stops a process that holds a lock for longer than the ttl. When it goes on, its first look finds the lease
// ended, and another has the lock.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	db := theDatabase(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderDSN+"="+db.dsn, holderNamespace+"="+db.cfg.Namespace)
	cmd.SysProcAttr = attributes(nil)
	cmd.Stderr = os.Stderr
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
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Wait()
	})
	said := bufio.NewScanner(out)
	says := func(want string) {
		t.Helper()
		if !said.Scan() || said.Text() != want {
			t.Fatalf("the holder said %q; want %q", said.Text(), want)
		}
	}
	look := func() {
		t.Helper()
		if _, err := fmt.Fprintln(in, "look"); err != nil {
			t.Fatal(err)
		}
	}
	says("held")
	look()
	says("ended: false lost: false valid: true")

	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	lease, err := crewLocker(t, db).Acquire(t.Context(), "x", locking.Options{TTL: time.Minute, Wait: 10 * crewTTL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lease.Close)
	t.Logf("another had the lock %s after the stop", time.Since(stopped).Round(time.Millisecond))
	look() // read when the process goes on
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	says("ended: true lost: true valid: false")
	if !lease.Valid() {
		t.Error("the new holder has lost its lease")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
