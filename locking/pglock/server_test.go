//go:build unix

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a program of PostgreSQL, or a pooler, on the loopback, with a directory of its own.
type server struct {
	dir     string
	account *syscall.Credential
	port    int
	args    []string // the command line
	cmd     *exec.Cmd
}

// newServer makes the directory and picks the port.
func newServer() (*server, error) {
	s := &server{}
	var err error
	if s.dir, err = os.MkdirTemp("", "pglock-"); err != nil {
		return nil, err
	}
	if s.account, err = lentAccount(s.dir); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	defer l.Close()
	s.port = l.Addr().(*net.TCPAddr).Port
	return s, nil
}

// lentAccount returns the user that the server runs as. PostgreSQL refuses root, so root lends it
// the account of Debian's package, with the directory.
func lentAccount(dir string) (*syscall.Credential, error) {
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
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

// program finds one of PostgreSQL's. Debian keeps them out of PATH.
func program(name, debian string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
	if len(found) > 0 {
		return slices.Max(found), nil
	}
	if path := "/usr/sbin/" + name; fileExists(path) {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: run `apt-get install %s` (or your system's like), or put %s in PATH: %w", name, debian, name, err)
	}
	return path, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// run runs a program to its end.
func (s *server) run(name string, args ...string) error {
	path, err := program(name, "postgresql")
	if err != nil {
		return err
	}
	if out, err := s.command(path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(s.account)
	return cmd
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// start starts the server, also once more after stop, and returns when it answers.
func (s *server) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	if err := s.ready(); err != nil {
		return fmt.Errorf("%s did not start: %w: %s", s.args[0], err, s.said())
	}
	return nil
}

// said returns the end of the server's log.
func (s *server) said() []byte {
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return log[max(0, len(log)-2000):]
}

// ready waits until the server answers.
func (s *server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.dsn())
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable connect_timeout=2", s.port)
}

// end ends the server by a signal to its pid: SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one.
func (s *server) end(signal syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(signal)
	waited := s.cmd.Wait()
	if signal == syscall.SIGINT && waited != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", s.args[0], waited, s.said()))
	}
	s.cmd = nil
	return err
}

// remove ends the server and removes its directory.
func (s *server) remove() error {
	if s == nil {
		return nil
	}
	err := s.end(syscall.SIGINT)
	return errors.Join(err, os.RemoveAll(s.dir))
}

// startPostgres starts a server with some settings besides.
func startPostgres(settings ...string) (*server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := s.run("initdb", "-D", s.data(), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := s.startData(settings...); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// startData starts a server on the data that is there.
func (s *server) startData(settings ...string) error {
	path, err := program("postgres", "postgresql")
	if err != nil {
		return err
	}
	s.args = []string{path, "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=" + s.dir, "-c", "max_connections=300"}
	for _, setting := range settings {
		s.args = append(s.args, "-c", setting)
	}
	return s.start()
}

// newPostgres starts a server of the test's own.
func newPostgres(tb testing.TB, settings ...string) *server {
	tb.Helper()
	s, err := startPostgres(settings...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.remove(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
