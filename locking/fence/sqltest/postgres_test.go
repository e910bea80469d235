//go:build unix

package sqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
	"go.uber.org/goleak"
)

// postgres is a server of this test's own: on the loopback, with its data in a
// directory of its own.
type postgres struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

// shared is the one server of all tests, started by the first that wants it.
var shared struct {
	sync.Mutex
	server *postgres
	err    error
}

// ending stops the server after all tests.
type ending struct{ *testing.M }

func (e ending) Run() int {
	code := e.M.Run()
	if err := shared.server.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(ending{m}) }

// theServer returns the shared server. A missing PostgreSQL fails the test; it is
// never skipped.
func theServer(t *testing.T) *postgres {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startPostgres()
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// program finds one of PostgreSQL's. Debian keeps them out of PATH.
func program(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
	if len(found) > 0 {
		return slices.Max(found), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is not installed: run `apt-get install postgresql` (or your system's like), or put initdb and postgres in PATH: %w", err)
	}
	return path, nil
}

func startPostgres() (*postgres, error) {
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	server, err := program("postgres")
	if err != nil {
		return nil, err
	}
	s := &postgres{}
	if s.dir, err = os.MkdirTemp("", "fence-postgres-"); err != nil {
		return nil, err
	}
	account, err := s.account()
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	data := filepath.Join(s.dir, "data")
	if out, err := s.command(account, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), s.stop())
	}
	if s.port, err = freePort(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	defer log.Close()
	cmd := s.command(account, server, "-D", data, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.dir, "-c", "fsync=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.cmd = cmd
	if err := s.ready(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("postgres did not start: %w: %s", err, said), s.stop())
	}
	return s, nil
}

// account returns the user that the server runs as. PostgreSQL refuses root, so root lends it the
// account of Debian's package.
func (s *postgres) account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user postgres: run the tests as somebody else: %w", err)
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(s.dir, uid, gid)
}

func (s *postgres) command(account *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(account)
	return cmd
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server answers.
func (s *postgres) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	db, err := sql.Open("postgres", s.dsn())
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *postgres) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable", s.port)
}

// stop ends the server, by its pid, and removes its data.
func (s *postgres) stop() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.cmd != nil {
		errs = append(errs, s.cmd.Process.Signal(syscall.SIGINT)) // ends the sessions, and then itself
		if err := s.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("postgres: %w", err))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
