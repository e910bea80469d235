package cronlock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// machine has a cron that starts a tick when the test calls fire.
type machine struct {
	entry *entry
	mu    sync.Mutex
	prev  time.Time // Entry.Prev
	log   redistest.Log
}

func newMachine(t *testing.T, client redis.UniversalClient, cfg Config, schedule cron.Schedule, job cron.Job) *machine {
	t.Helper()
	m := &machine{}
	cfg.Logger = slog.New(slog.NewTextHandler(&m.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	locker := redislock.New(client, redislock.Config{Logger: cfg.Logger})
	t.Cleanup(locker.Close)
	c := cron.New(Once("test", locker, client, cfg))
	id := c.Schedule(schedule, job)
	m.entry = c.Entry(id).WrappedJob.(*entry)
	entries := m.entry.entries
	m.entry.entries = func() []cron.Entry {
		m.mu.Lock()
		defer m.mu.Unlock()
		all := entries()
		all[0].Prev = m.prev
		return all
	}
	return m
}

// fire is the cron that starts the tick; it returns when the job has ended.
func (m *machine) fire(tick time.Time) {
	m.mu.Lock()
	m.prev = tick
	m.mu.Unlock()
	m.entry.Run()
}

func (m *machine) logged(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(m.log.String(), want) {
		t.Errorf("log: want %q in\n%s", want, m.log.String())
	}
}

// recorder counts the runs of a job.
type recorder struct {
	mu   sync.Mutex
	runs []Run
}

func (r *recorder) job() cron.Job {
	return Named("report", func(_ context.Context, run Run) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.runs = append(r.runs, run)
	})
}

func embedded(t *testing.T) *redis.Client {
	t.Helper()
	_, client := redistest.StartEmbedded(t)
	return client
}

var minutely = &cron.SpecSchedule{}

// A machine whose clock is behind comes when the lock has been released.
func TestLateMachine(t *testing.T) {
	client, r := embedded(t), &recorder{}
	ahead := newMachine(t, client, Config{}, minutely, r.job())
	behind := newMachine(t, client, Config{}, minutely, r.job())
	first := time.Now().Truncate(time.Second)
	for _, tick := range []time.Time{first, first.Add(time.Second), first.Add(2 * time.Second)} {
		ahead.fire(tick)
		behind.fire(tick)
		behind.fire(tick.Add(-time.Second))
	}
	if len(r.runs) != 3 {
		t.Fatalf("%d runs of 3 ticks: %v", len(r.runs), r.runs)
	}
	for i, run := range r.runs {
		if want := first.Add(time.Duration(i) * time.Second); !run.Tick.Equal(want) || run.Name != "report" || run.Tick.Location() != time.UTC {
			t.Errorf("run %d: %+v; want report at %s", i, run, want)
		}
		if i > 0 && run.Token <= r.runs[i-1].Token {
			t.Errorf("token %d after %d", run.Token, r.runs[i-1].Token)
		}
	}
	behind.logged(t, "level=DEBUG")
	if strings.Contains(behind.log.String(), "level=ERROR") {
		t.Errorf("a tick that ran elsewhere is an error: %s", behind.log.String())
	}
}

// Each machine counts @every from its own start.
func TestEvery(t *testing.T) {
	client, r := embedded(t), &recorder{}
	a := newMachine(t, client, Config{}, cron.Every(10*time.Minute), r.job())
	b := newMachine(t, client, Config{}, cron.Every(10*time.Minute), r.job())
	now := time.Now()
	other := now.Add(time.Second)
	if !other.Truncate(10 * time.Minute).Equal(now.Truncate(10 * time.Minute)) {
		other = now.Add(-time.Second)
	}
	a.fire(now)
	b.fire(other)
	if len(r.runs) != 1 || !r.runs[0].Tick.Equal(now.Truncate(10*time.Minute)) {
		t.Errorf("runs: %v; want one, of the interval's start", r.runs)
	}
}

// A tick that comes while the last run goes on is skipped; with a Wait it runs afterwards.
func TestOverlap(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			client := embedded(t)
			began, end := make(chan Run, 2), make(chan struct{})
			job := func() cron.Job {
				return Named("report", func(_ context.Context, run Run) { began <- run; <-end })
			}
			cfg := Config{Lock: locking.Options{Wait: wait}}
			a, b := newMachine(t, client, cfg, minutely, job()), newMachine(t, client, cfg, minutely, job())
			tick := time.Now().Truncate(time.Second)
			var running sync.WaitGroup
			running.Go(func() { a.fire(tick) })
			first := <-began
			b.fire(tick)
			b.logged(t, "it was claimed before") // found without asking for the lock
			if wait == 0 {
				b.fire(tick.Add(time.Second))
				close(end)
				b.logged(t, "the lock of its entry is held")
			} else {
				running.Go(func() { b.fire(tick.Add(time.Second)) })
				for ownership(t, b).Waiters == 0 {
				}
				close(end)
				if second := <-began; second.Token <= first.Token || !second.Tick.Equal(tick.Add(time.Second)) {
					t.Errorf("after %v came %v", first, second)
				}
			}
			running.Wait()
			if len(began) != 0 {
				t.Errorf("one more run: %v", <-began)
			}
		})
	}
}

func ownership(t *testing.T, m *machine) locking.Ownership {
	t.Helper()
	o, err := m.entry.locker.Owner(t.Context(), m.entry.lock)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The job's context ends with its lease.
func TestLostLease(t *testing.T) {
	client := embedded(t)
	m := newMachine(t, client, Config{Lock: locking.Options{TTL: 3 * time.Second}}, minutely, Named("report", func(ctx context.Context, _ Run) {
		client.FlushAll(ctx)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, locking.ErrLeaseLost) {
			t.Errorf("the context ended because of %v", cause)
		}
	}))
	m.fire(time.Now())
	m.logged(t, "was lost while its job ran")
}

// A lease that was lost before the claim does not run: here a later lease has claimed a tick meanwhile.
func TestLostBeforeTheClaim(t *testing.T) {
	client, r := embedded(t), &recorder{}
	m := newMachine(t, client, Config{}, minutely, r.job())
	tick := time.Now().Truncate(time.Second)
	later := m.entry.mark
	if err := later.claim(t.Context(), tickAt(tick.Add(-time.Second)), 1<<53-1); err != nil {
		t.Fatal(err)
	}
	m.fire(tick)
	if len(r.runs) != 0 {
		t.Errorf("runs: %v", r.runs)
	}
	m.logged(t, "not held any more")
}

// afterClaim runs f after each reply to a claim, before the caller gets it.
type afterClaim struct{ f func() }

func (afterClaim) DialHook(next redis.DialHook) redis.DialHook { return next }

func (afterClaim) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h afterClaim) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		args := cmd.Args() // evalsha digest 1 mark tick due token skew keep
		if token, is := args[min(6, len(args)-1)].(locking.Token); is && token > 0 && strings.Contains(args[3].(string), keyInfix) {
			h.f()
		}
		return err
	}
}

// bubble runs a test in virtual time, over a network that may fail.
func bubble(t *testing.T, test func(t *testing.T, client *redis.Client, network *redistest.Net)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, _ := redistest.StartEmbedded(t)
		network := new(redistest.Net)
		client := network.Client(server.Options())
		t.Cleanup(func() { // a pool dials on, each second, until it sees that its client is closed
			_ = client.Close()
			<-time.After(2 * time.Second)
			synctest.Wait()
		})
		test(t, client, network)
	})
}

// A process that was stopped after its claim, for longer than its lease lasts, does not begin the job.
func TestStoppedAfterTheClaim(t *testing.T) {
	bubble(t, func(t *testing.T, client *redis.Client, _ *redistest.Net) {
		r := &recorder{}
		m := newMachine(t, client, Config{Lock: locking.Options{Fixed: true}}, minutely, r.job())
		client.AddHook(afterClaim{func() { <-time.After(20 * time.Second) }})
		m.fire(time.Now())
		if len(r.runs) != 0 {
			t.Errorf("runs: %v", r.runs)
		}
		m.logged(t, "the lease was lost before the job began")
	})
}

// A lost reply to the look or to the claim costs a second, not the tick.
func TestLostReplies(t *testing.T) {
	bubble(t, func(t *testing.T, client *redis.Client, network *redistest.Net) {
		r := &recorder{}
		m := newMachine(t, client, Config{}, minutely, r.job())
		m.fire(time.Now())
		for _, before := range []int{0, 1} { // calls before the lost reply
			<-time.After(10 * time.Second)
			calls := 0
			client.AddHook(beforeCall{func(mark bool) {
				if mark && calls == before {
					network.LoseReplies(1, "{escapement"+keyInfix)
				}
				if mark {
					calls++
				}
			}})
			m.fire(time.Now())
			if network.Losing() != 0 {
				t.Errorf("no reply was lost")
			}
		}
		if len(r.runs) != 3 {
			t.Errorf("%d runs of 3 ticks: %v; log:\n%s", len(r.runs), r.runs, m.log.String())
		}
	})
}

// beforeCall runs f before each command, with whether the command is about a mark.
type beforeCall struct{ f func(mark bool) }

func (beforeCall) DialHook(next redis.DialHook) redis.DialHook { return next }

func (beforeCall) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h beforeCall) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		key, _ := args[min(3, len(args)-1)].(string)
		h.f(strings.Contains(key, "{escapement"+keyInfix))
		return next(ctx, cmd)
	}
}

func tickAt(at time.Time) tick { return tick{at: at, due: at} }

func TestUnreachable(t *testing.T) {
	server, client := redistest.StartEmbedded(t)
	r := &recorder{}
	m := newMachine(t, client, Config{}, minutely, r.job())
	server.Stop()
	m.fire(time.Now())
	if len(r.runs) != 0 {
		t.Errorf("runs: %v", r.runs)
	}
	m.logged(t, "level=ERROR")
	m.logged(t, locking.ErrUnreachable.Error())
}

// A machine with a wrong clock runs nothing, and logs the reason.
func TestWrongClock(t *testing.T) {
	client, r := embedded(t), &recorder{}
	m := newMachine(t, client, Config{MaxSkew: 5 * time.Second}, minutely, r.job())
	m.fire(time.Now().Add(7 * time.Second))
	m.fire(time.Now().Add(-7 * time.Second))
	if len(r.runs) != 0 {
		t.Errorf("runs: %v", r.runs)
	}
	m.logged(t, "level=ERROR")
	m.logged(t, "set this machine's clock")
	m.fire(time.Now())
	if len(r.runs) != 1 {
		t.Errorf("at the right time: %d runs", len(r.runs))
	}
}

func TestCalledByHand(t *testing.T) {
	client, r := embedded(t), &recorder{}
	m := newMachine(t, client, Config{}, minutely, r.job())
	m.fire(time.Time{})
	m.logged(t, "outside of a tick")
	m.entry.entries = func() []cron.Entry { return nil } // removed meanwhile
	m.entry.Run()
	if len(r.runs) != 0 {
		t.Errorf("runs: %v", r.runs)
	}
}

// A panic ends the run and leaves the lock free. Config.Chain may recover it.
func TestPanic(t *testing.T) {
	client := embedded(t)
	job := func() cron.Job { return Named("report", func(context.Context, Run) { panic("stock is negative") }) }
	var recovered bytes.Buffer
	logger := cron.PrintfLogger(slog.NewLogLogger(slog.NewTextHandler(&recovered, nil), slog.LevelInfo))
	tame := newMachine(t, client, Config{Chain: []cron.JobWrapper{cron.Recover(logger)}}, minutely, job())
	tame.fire(time.Now().Add(-time.Second))
	if !strings.Contains(recovered.String(), "stock is negative") {
		t.Errorf("recovered: %s", recovered.String())
	}
	wild := newMachine(t, client, Config{}, minutely, job())
	func() {
		defer func() {
			if p := recover(); p != "stock is negative" {
				t.Errorf("recovered %v", p)
			}
		}()
		wild.fire(time.Now())
	}()
	if o := ownership(t, wild); o.Held() {
		t.Errorf("the lock is held: %+v", o)
	}
}
