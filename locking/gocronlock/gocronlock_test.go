//go:build unix

package gocronlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/gocronlock"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

var quiet = slog.New(slog.DiscardHandler)

// machine is one with a network of its own.
type machine struct {
	net    *redistest.Net
	locker *locking.Locker
	cancel context.CancelFunc
	ended  chan error
	log    redistest.Log // of the elector
	*gocronlock.Elector
}

// bubble runs a test in virtual time, with an embedded Redis.
func bubble(t *testing.T, test func(t *testing.T, add func() *machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, _ := redistest.StartEmbedded(t)
		test(t, func() *machine {
			m := &machine{net: new(redistest.Net), ended: make(chan error, 1)}
			client := m.net.Client(server.Options())
			m.locker = redislock.New(client, redislock.Config{Logger: quiet})
			t.Cleanup(func() { // a pool dials on, each second, until it sees that its client is closed
				<-time.After(2 * time.Second)
				synctest.Wait()
			})
			t.Cleanup(func() { _ = client.Close() })
			t.Cleanup(m.locker.Close)
			t.Cleanup(m.net.Heal)
			return m
		})
	})
}

// campaign starts the machine's Run, which ends with the test.
func (m *machine) campaign(t *testing.T) {
	t.Helper()
	var err error
	if m.Elector, err = gocronlock.NewElector("test", m.locker, gocronlock.ElectorConfig{Logger: slog.New(slog.NewTextHandler(&m.log, nil))}); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(t.Context())
	go func() { m.ended <- m.Run(ctx) }()
	t.Cleanup(m.cancel)
}

// leads waits until the machine is the leader and returns how long that took.
func (m *machine) leads(t *testing.T, within time.Duration) time.Duration {
	t.Helper()
	return until(t, within, func() bool { return m.IsLeader(t.Context()) == nil })
}

// until looks every 10 ms of virtual time.
func until(t *testing.T, within time.Duration, ready func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ready() {
		if time.Since(began) > within {
			t.Fatalf("not within %s", within)
		}
		<-time.After(10 * time.Millisecond)
	}
	return time.Since(began)
}

// A leader that is cut off notices its loss before another machine leads.
func TestLeaderCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, add func() *machine) {
		a, b := add(), add()
		a.campaign(t)
		a.leads(t, time.Second)
		b.campaign(t)
		synctest.Wait()
		if err := b.IsLeader(t.Context()); !errors.Is(err, gocronlock.ErrNotLeader) || b.Lease() != nil {
			t.Errorf("the second machine: %v, lease %v", err, b.Lease())
		}
		first := a.Lease().Token()

		a.net.Cut()
		left := until(t, time.Minute, func() bool { return a.IsLeader(t.Context()) != nil })
		if err := b.IsLeader(t.Context()); err == nil {
			t.Error("two leaders")
		}
		synctest.Wait()
		if a.Lease() != nil {
			t.Error("a lease of a machine that does not lead")
		}
		took := b.leads(t, time.Minute)
		t.Logf("cut off: told after %s; the next leader %s later", left, took)
		if left > 13900*time.Millisecond || took < time.Second {
			t.Errorf("told after %s, replaced %s later; want at most the deadline of 13.85 s, and the margin of 1 s", left, took)
		}
		if second := b.Lease().Token(); second <= first {
			t.Errorf("token %d after %d", second, first)
		}
		a.net.Heal()
		<-time.After(65 * time.Minute) // longer than one call waits
		if a.IsLeader(t.Context()) == nil || b.IsLeader(t.Context()) != nil {
			t.Error("the first machine leads again, while the second does")
		}
		if strings.Contains(a.log.String(), "level=ERROR") {
			t.Errorf("waiting is an error: %s", a.log.String())
		}
		b.cancel() // the first one waits again
		a.leads(t, time.Second)
	})
}

// A machine that stops hands the lead over at once.
func TestLeaderStops(t *testing.T) {
	bubble(t, func(t *testing.T, add func() *machine) {
		a, b := add(), add()
		a.campaign(t)
		a.leads(t, time.Second)
		b.campaign(t)
		<-time.After(10 * time.Second)
		lease := a.Lease()
		a.cancel()
		if err := <-a.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if a.IsLeader(t.Context()) == nil || lease.Context().Err() == nil {
			t.Error("a leader after Run has ended")
		}
		if took := b.leads(t, time.Minute); took > 100*time.Millisecond {
			t.Errorf("the next leader after %s", took)
		}
		if err := b.locker.Revoke(t.Context(), "gocron:test:leader", b.Lease().Token()); err != nil {
			t.Fatal(err)
		}
		revoked := b.Lease().Token()
		until(t, time.Minute, func() bool { l := b.Lease(); return l != nil && l.Token() > revoked }) // there is no other machine
	})
}

func TestLongCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, add func() *machine) {
		a := add()
		a.net.Cut()
		a.campaign(t)
		<-time.After(65 * time.Minute) // longer than one call waits
		if a.IsLeader(t.Context()) == nil {
			t.Error("a leader without a store")
		}
		a.net.Heal()
		a.leads(t, time.Minute)
	})
}

func TestRefusedElector(t *testing.T) {
	bubble(t, func(t *testing.T, add func() *machine) {
		m := add()
		e, err := gocronlock.NewElector("test", m.locker, gocronlock.ElectorConfig{TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var input *locking.InputError
		if err := e.Run(t.Context()); !errors.As(err, &input) {
			t.Errorf("a TTL below three margins: %v", err)
		}
		if _, err := gocronlock.NewElector("", m.locker, gocronlock.ElectorConfig{}); err == nil {
			t.Error("no group: accepted")
		}
		if _, err := gocronlock.NewElector("a", nil, gocronlock.ElectorConfig{}); err == nil {
			t.Error("no locker: accepted")
		}
		for want, f := range map[string]func() (*gocronlock.Locker, error){
			"group is empty": func() (*gocronlock.Locker, error) { return gocronlock.NewLocker("", m.locker, 0, locking.Options{}) },
			"locker is nil":  func() (*gocronlock.Locker, error) { return gocronlock.NewLocker("a", nil, 0, locking.Options{}) },
			"atLeast is -1s": func() (*gocronlock.Locker, error) {
				return gocronlock.NewLocker("a", m.locker, -time.Second, locking.Options{})
			},
		} {
			if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		}
	})
}

// A machine whose clock is behind by less than atLeast finds the lock held. A machine that is
// behind by more, or any machine without atLeast, runs the tick again: gocron names no instant.
func TestLateMachine(t *testing.T) {
	for _, c := range []struct {
		atLeast, takes, behind time.Duration
		again                  bool
	}{
		{atLeast: 0, takes: 100 * time.Millisecond, behind: 200 * time.Millisecond, again: true},
		{atLeast: 5 * time.Second, takes: 100 * time.Millisecond, behind: 4900 * time.Millisecond, again: false},
		{atLeast: 5 * time.Second, takes: 100 * time.Millisecond, behind: 5100 * time.Millisecond, again: true},
		{atLeast: 5 * time.Second, takes: time.Minute, behind: 59 * time.Second, again: false},
		{atLeast: 5 * time.Second, takes: time.Minute, behind: 61 * time.Second, again: true},
		{atLeast: time.Minute, takes: 100 * time.Millisecond, behind: 59 * time.Second, again: false}, // longer than the TTL
	} {
		bubble(t, func(t *testing.T, add func() *machine) {
			run := func(m *machine, takes time.Duration) error {
				l, err := gocronlock.NewLocker("test", m.locker, c.atLeast, locking.Options{})
				if err != nil {
					t.Fatal(err)
				}
				job, cancel := context.WithCancel(t.Context())
				held, err := l.Lock(job, "report")
				if err != nil {
					cancel()
					return err
				}
				<-time.After(takes)
				cancel() // gocron removes the job
				if err := held.Unlock(job); err != nil {
					t.Errorf("unlock: %v", err)
				}
				return nil
			}
			a, b := add(), add()
			var both sync.WaitGroup
			both.Go(func() {
				if err := run(a, c.takes); err != nil {
					t.Errorf("the first machine: %v", err)
				}
			})
			<-time.After(c.behind)
			err := run(b, 0)
			if again := err == nil; again != c.again || err != nil && !errors.Is(err, locking.ErrHeld) {
				t.Errorf("at least %s, a job of %s, %s behind: %v; runs again: want %v", c.atLeast, c.takes, c.behind, err, c.again)
			}
			both.Wait()
			<-time.After(c.atLeast + time.Second)
			if o, err := a.locker.Owner(t.Context(), "gocron:test:report"); err != nil || o.Held() {
				t.Errorf("afterwards: %+v, %v", o, err)
			}
		})
	}
}

func TestUnlockOfALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, add func() *machine) {
		m := add()
		l, err := gocronlock.NewLocker("test", m.locker, time.Hour, locking.Options{TTL: 3 * time.Second, Fixed: true})
		if err != nil {
			t.Fatal(err)
		}
		held, err := l.Lock(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		if err := held.Unlock(t.Context()); !errors.Is(err, locking.ErrLost) {
			t.Errorf("unlock: %v", err)
		}
	})
}

// Three schedulers of gocron itself, on a real Redis: each tick runs once, and the next leader goes on.
func TestSchedulers(t *testing.T) {
	server := redistest.Start(t)
	var mu sync.Mutex
	runs := map[int]int{}
	count := func(machine int) int {
		mu.Lock()
		defer mu.Unlock()
		return runs[machine]
	}
	total := func() int { return count(0) + count(1) + count(2) }
	machines := make([]*machine, 3)
	for i := range machines {
		m := &machine{ended: make(chan error, 1), locker: redislock.New(server.Client(t), redislock.Config{Logger: quiet})}
		t.Cleanup(m.locker.Close)
		m.campaign(t)
		machines[i] = m
		s, err := gocron.NewScheduler(gocron.WithDistributedElector(m.Elector))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			m.cancel()
			if err := <-m.ended; err != nil {
				t.Error(err)
			}
		})
		_, err = s.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(func() {
			mu.Lock()
			defer mu.Unlock()
			runs[i]++
		}), gocron.WithName("report"))
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
	}
	awaitTotal := func(n int) {
		t.Helper()
		until(t, 20*time.Second, func() bool { return total() >= n })
	}
	awaitTotal(10)
	for i, m := range machines {
		if m.IsLeader(t.Context()) != nil {
			continue
		}
		if others := count((i+1)%3) + count((i+2)%3); others != 0 {
			t.Errorf("machine %d leads, and the others have %d runs", i, others)
		}
		m.cancel()
		if err := <-m.ended; err != nil {
			t.Error(err)
		}
		m.ended <- nil // for the end of the test
		before := count(i)
		awaitTotal(total() + 10)
		if n := count(i); n > before+1 { // one may have begun
			t.Errorf("machine %d leads no more, and has %d runs after %d", i, n, before)
		}
		return
	}
	t.Error("nobody leads")
}
