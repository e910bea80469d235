//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// stopWithin is how long a server may take to end after SIGTERM; a paused one does not.
const stopWithin = 30 * time.Second

// ProcessConfig is how StartProcess starts a redis-server.
type ProcessConfig struct {
	Dir  string   // where its data goes; required, must exist
	Port int      // 0: a free one
	Args []string // more arguments, after the usual ones, as in "--maxmemory", "100mb"

	tls      *Certificates // of a server that speaks TLS alone; nil: without TLS
	sentinel string        // the file in which a sentinel keeps its state; "": an ordinary server
	log      io.Writer     // gets the output of the process; nil: only the last of it is kept
}

// Server is a redis-server process on the loopback interface.
type Server struct {
	cfg ProcessConfig

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and was waited for
}

// Start starts a redis-server for one test and ends it, by its pid, when the
// test does. A missing redis-server fails the test; it is never skipped.
func Start(tb TB) *Server {
	tb.Helper()
	s, err := StartProcess(ProcessConfig{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Kill(); err != nil {
			tb.Fatal(err)
		}
	})
	return s
}

// StartProcess starts a redis-server and returns when it is ready. The caller
// ends it with Stop or Kill; on Linux it also ends with this process.
func StartProcess(cfg ProcessConfig) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("redis-server: no directory for its data; set ProcessConfig.Dir")
	}
	s := &Server{cfg: cfg}
	tries := 1
	if cfg.Port == 0 {
		tries = 5 // another process may take a port between finding and using it
	}
	var err error
	for range tries {
		if cfg.Port == 0 {
			if s.cfg.Port, err = freePort(); err != nil {
				return nil, err
			}
		}
		if err = s.Restart(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Addr returns the address to connect to.
func (s *Server) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.cfg.Port))
}

// Client returns a client for a test's own calls, closed when the test ends. Its settings are
// ClientOptions, except that only a standstill of the machine ends a call without a deadline.
func (s *Server) Client(tb TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(patientOptions(s.Addr()))
	tb.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Fatalf("close the client of %s: %v", s.Addr(), err)
		}
	})
	return c
}

// Pid returns the process id, 0 when the server is not running.
func (s *Server) Pid() int {
	cmd, _ := s.running()
	if cmd == nil {
		return 0
	}
	return cmd.Process.Pid
}

// running returns the process, and the channel that is closed at its end; nil when there is none,
// or it has ended by itself.
func (s *Server) running() (*exec.Cmd, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil, nil
	}
	select {
	case <-s.exited:
		return nil, nil
	default:
		return s.cmd, s.exited
	}
}

// Restart starts the server again on the same port with the data that it kept.
// A running one is stopped first.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not installed: run `apt-get install redis-server` (or your system's like), or put it in PATH: %w", err)
	}
	out := newOutput()
	out.whole = s.cfg.log
	cmd := exec.Command(path, s.args()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.cfg.Dir, out, out
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: start: %w", err)
	}
	exited := make(chan struct{})
	go func() { // ends with the process
		_ = cmd.Wait() // its exit status adds nothing to its output
		close(exited)
	}()
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
	select {
	case <-out.ready:
		return nil
	case <-exited:
		s.forget()
		return fmt.Errorf("redis-server on %s ended at once: %s", s.Addr(), out)
	case <-time.After(standstill):
		return errors.Join(fmt.Errorf("redis-server on %s was not ready within %s: %s", s.Addr(), standstill, out), s.Kill())
	}
}

func (s *Server) args() []string {
	at := []string{"--port", strconv.Itoa(s.cfg.Port), "--bind", "127.0.0.1", "--dir", s.cfg.Dir}
	if s.cfg.sentinel != "" {
		at = append([]string{s.cfg.sentinel}, at...)
		if s.cfg.tls != nil {
			at = append(at, s.cfg.tls.settings(s.cfg.Port)...)
		}
		return append(at, "--sentinel")
	}
	at = append(at,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no")
	if s.cfg.tls != nil {
		at = append(at, s.cfg.tls.settings(s.cfg.Port)...)
	}
	return append(at, s.cfg.Args...)
}

// Stop ends the server in order: it writes its data and exits. It returns when
// the process is gone; a server that is not running is no error.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server with SIGKILL. The writes in its append only file stay.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Pause stops the process with SIGSTOP: connections stay, nothing answers.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) end(sig os.Signal) error {
	cmd, exited := s.running()
	if cmd != nil {
		if err := s.send(cmd, sig); err != nil {
			return err
		}
		select {
		case <-exited:
		case <-time.After(stopWithin): // paused, or stuck
			if err := s.send(cmd, syscall.SIGKILL); err != nil {
				return err
			}
			<-exited
		}
	}
	s.forget()
	return nil
}

func (s *Server) signal(sig os.Signal) error {
	cmd, _ := s.running()
	if cmd == nil {
		return fmt.Errorf("redis-server on %s: %v: it is not running; call Restart", s.Addr(), sig)
	}
	return s.send(cmd, sig)
}

// send sends a signal to a process, which may have ended meanwhile.
func (s *Server) send(cmd *exec.Cmd, sig os.Signal) error {
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("redis-server on %s: %v: %w", s.Addr(), sig, err)
	}
	return nil
}

func (s *Server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.exited = nil, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("redis-server: no free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// until calls yes again and again until it returns true.
func until(ctx context.Context, what string, yes func(context.Context) (bool, error)) error {
	for {
		ok, err := yes(ctx)
		if ok {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redistest: until %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}

// StartMasters starts n independent servers, for redlock, and stops them when the test ends.
func StartMasters(tb TB, n int) []*Server {
	tb.Helper()
	masters := make([]*Server, n)
	for i := range masters {
		masters[i] = Start(tb)
	}
	return masters
}
