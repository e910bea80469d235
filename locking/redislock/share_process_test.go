//go:build unix

package redislock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// The environment of a process of these tests: the address of Redis, the address of the sink, and
// the share to acquire.
const (
	redisVariable = "REDISLOCK_TEST_REDIS"
	sinkVariable  = "REDISLOCK_TEST_SINK"
	shareVariable = "REDISLOCK_TEST_SHARE" // a number of permits, or "read"
)

const processTTL = 3 * time.Second

// contend is the main function of such a process: it acquires, reports to the sink, waits for the
// sink's answer, reports its leaving, and releases, until the sink answers "stop".
func contend() error {
	client := redis.NewClient(redistest.ClientOptions(os.Getenv(redisVariable)))
	locker := redislock.New(client, redislock.Config{})
	sink, err := new(net.Dialer).DialContext(context.Background(), "tcp", os.Getenv(sinkVariable))
	if err != nil {
		return err
	}
	answers := bufio.NewScanner(sink)
	tell := func(what string) (stop bool, err error) {
		if _, err := fmt.Fprintln(sink, what); err != nil {
			return true, err
		}
		if !answers.Scan() {
			return true, io.ErrUnexpectedEOF
		}
		return answers.Text() == "stop", answers.Err()
	}
	o := locking.Options{TTL: processTTL, Wait: time.Minute, Mode: locking.Read}
	if permits, err := strconv.Atoi(os.Getenv(shareVariable)); err == nil {
		o.Mode, o.Permits = locking.Exclusive, permits
	}
	for stop := false; !stop; {
		lease, err := locker.Acquire(context.Background(), "a", o)
		if err != nil {
			return err
		}
		if _, err = tell(fmt.Sprint("enter ", os.Getpid(), " ", lease.Token())); err != nil {
			return err
		}
		if stop, err = tell("leave"); err != nil {
			return err
		}
		if err := lease.Release(context.Background()); err != nil {
			return err
		}
	}
	locker.Close()
	return client.Close()
}

// contends runs contend in a process of these tests, and does not return then.
func contends() {
	if os.Getenv(sinkVariable) == "" {
		return
	}
	if err := contend(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// recorder records which processes are inside, by their reports and by the end of their
// connections. It has no connection to Redis.
type recorder struct {
	t        *testing.T
	listener net.Listener
	most     int // so many may be inside

	mu      sync.Mutex
	inside  map[string]bool // by process id
	entered map[string]int
	last    map[string]int64 // token of each process
	tokens  map[int64]bool
	peak    int
	stop    bool
	atEnter func(pid string) // called before the answer; may be nil
	serving sync.WaitGroup
}

func newRecorder(t *testing.T, most int) *recorder {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &recorder{
		t: t, listener: l, most: most,
		inside: map[string]bool{}, entered: map[string]int{}, last: map[string]int64{}, tokens: map[int64]bool{},
	}
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { s.serve(c) })
		}
	})
	return s
}

func (s *recorder) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	pid := ""
	for lines := bufio.NewScanner(c); lines.Scan(); {
		answer := "ok"
		if said := strings.Fields(lines.Text()); said[0] == "enter" {
			pid = said[1]
			s.enter(pid, said[2])
			<-time.After(time.Millisecond) // the duration of the work
		} else if s.leave(pid) {
			answer = "stop"
		}
		if _, err := fmt.Fprintln(c, answer); err != nil {
			break
		}
	}
	s.leave(pid)
}

func (s *recorder) enter(pid, text string) {
	s.mu.Lock()
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || s.tokens[token] || token <= s.last[pid] {
		s.t.Errorf("process %s has token %s after %d; tokens are new, and increase", pid, text, s.last[pid])
	}
	s.tokens[token], s.last[pid] = true, token
	s.inside[pid] = true
	s.entered[pid]++
	s.peak = max(s.peak, len(s.inside))
	if len(s.inside) > s.most {
		s.t.Errorf("%d are inside at %s: %v", len(s.inside), time.Now().Format(time.StampMilli), s.inside)
	}
	atEnter := s.atEnter
	s.mu.Unlock()
	if atEnter != nil {
		atEnter(pid)
	}
}

func (s *recorder) leave(pid string) (stop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, pid)
	return s.stop
}

// counts returns how often each process has entered.
func (s *recorder) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int, len(s.entered))
	for pid, n := range s.entered {
		counts[pid] = n
	}
	return counts
}

// start starts a process that contends.
func (s *recorder) start(redisAddr, share string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), redisVariable+"="+redisAddr, sinkVariable+"="+s.listener.Addr().String(), shareVariable+"="+share)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { // a process that was waited for already has ended
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (s *recorder) close() {
	if err := s.listener.Close(); err != nil {
		s.t.Error(err)
	}
	s.serving.Wait()
}

// TestPermitsOfKilledProcesses: of twelve processes that contend for three permits some are killed, half of them while they hold
// one. At the sink there are never four, and the survivors have equal shares.
func TestPermitsOfKilledProcesses(t *testing.T) {
	t.Parallel()
	const permits, contenders, kills = 3, 12, 6
	redisAddr := redistest.Start(t).Addr()
	s := newRecorder(t, permits)
	running := map[string]*exec.Cmd{}
	start := func() {
		cmd := s.start(redisAddr, strconv.Itoa(permits))
		running[strconv.Itoa(cmd.Process.Pid)] = cmd
	}
	for range contenders {
		start()
	}
	await(t, "all contend", func() bool { return len(s.counts()) == contenders })
	before := s.counts()
	rng := rand.New(rand.NewPCG(5, 11))
	survivors := map[string]bool{}
	for pid := range running {
		survivors[pid] = true
	}
	for i := range kills {
		pids := make([]string, 0, len(running))
		for pid := range running {
			pids = append(pids, pid)
		}
		slices.Sort(pids)
		victim := pids[rng.IntN(len(pids))]
		<-time.After(time.Duration(rng.IntN(500)) * time.Millisecond) // the moment is random
		if i%2 == 0 {
			s.killInside(victim, running[victim])
		} else if err := running[victim].Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = running[victim].Wait()
		delete(running, victim)
		delete(survivors, victim)
		start()
	}
	await(t, "all survivors have worked for a while", func() bool {
		now := s.counts()
		for pid := range survivors {
			if now[pid]-before[pid] < 100 {
				return false
			}
		}
		return true
	})
	after := s.counts()
	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	for pid, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %s: %v", pid, err)
		}
	}
	s.close()
	var shares []int
	for pid := range survivors {
		shares = append(shares, after[pid]-before[pid])
	}
	t.Logf("at most %d inside; shares of the survivors %v", s.peak, shares)
	if least, most := slices.Min(shares), slices.Max(shares); s.peak != permits || float64(most) > 1.3*float64(least) {
		t.Errorf("at most %d of %d were inside, with shares %v; want all permits in use, and the largest share at most 1.3 times the smallest", s.peak, permits, shares)
	}
}

// killInside kills a process when it enters.
func (s *recorder) killInside(pid string, cmd *exec.Cmd) {
	entered := make(chan struct{})
	s.mu.Lock()
	s.atEnter = func(who string) {
		if who != pid {
			return
		}
		if err := cmd.Process.Kill(); err != nil {
			s.t.Error(err)
		}
		close(entered)
	}
	s.mu.Unlock()
	<-entered
	s.mu.Lock()
	s.atEnter = nil
	s.mu.Unlock()
}

// TestReaderIsKilled: a writer has the lock when the ttl of a reader that was killed is over, and not before.
func TestReaderIsKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newRecorder(t, 1)
	defer s.close()
	inside, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	s.mu.Lock()
	s.atEnter = func(string) {
		close(inside)
		<-over // no answer: it stays inside
	}
	s.mu.Unlock()
	reader := s.start(server.Addr(), "read")
	l := redislock.New(server.Client(t), redislock.Config{})
	defer l.Close()
	<-inside
	if err := reader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Wait()
	killed := time.Now()
	o, err := l.Owner(t.Context(), "a")
	if err != nil || o.Share.Mode != locking.Read {
		t.Fatalf("after the kill: %+v, %v", o, err)
	}
	lease, err := l.Acquire(t.Context(), "a", locking.Options{Mode: locking.Write, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took < o.Left-50*time.Millisecond {
		t.Errorf("the writer had the lock after %s; the reader's lease had %s left", took, o.Left)
	}
	give(t, lease)
}

// TestWriterAmongReaders: a writer gets its turn though there is always a reader.
func TestWriterAmongReaders(t *testing.T) {
	t.Parallel()
	const readers, turns, reads = 8, 20, 20 * time.Millisecond // each at most
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range readers {
		l := redislock.New(server.Client(t), redislock.Config{})
		defer l.Close()
		wg.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, "a", locking.Options{Mode: locking.Read, Wait: time.Minute})
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("reader %d: %v", i, err)
					}
					return
				}
				<-time.After(reads/4 + rand.N(reads*3/4)) // they must not end together
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("reader %d: %v", i, err)
				}
			}
		})
	}
	writer := redislock.New(server.Client(t), redislock.Config{})
	defer writer.Close()
	await(t, "a reader reads", func() bool {
		o, err := writer.Owner(t.Context(), "a")
		return err == nil && o.Held()
	})
	var waits []time.Duration
	for range turns {
		begun := time.Now()
		lease, err := writer.Acquire(t.Context(), "a", locking.Options{Mode: locking.Write, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, time.Since(begun))
		give(t, lease)
	}
	cancel()
	wg.Wait()
	slices.Sort(waits)
	t.Logf("the writer waited for %s, at most %s", waits[turns/2], waits[turns-1])
}
