package schedtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/audit"
)

// moving is one move that is played.
type moving struct {
	t        *testing.T
	rng      *rand.Rand
	begun    time.Time
	from, to *redistest.Embedded
	procs    []*proc
	started  int

	shut, opened  time.Time     // when nothing was granted, at the longest
	offset        time.Duration // of the clock of to
	cancels       bool          // the seal cancels runs
	sealed        time.Time     // runs that start later were granted by the new side
	kills, aborts int
	partitions    int
	report        audit.Report

	mu        sync.Mutex
	story     []string
	writes    []audit.Write
	disturbed []audit.Disturbance
}

// proc is a process: a node, and after the move its successor.
type proc struct {
	name     string
	stop     context.CancelFunc
	done     chan struct{}
	networks [2]redistest.Net
}

func newMoving(t *testing.T, seed uint64) *moving {
	m := &moving{t: t, rng: rand.New(rand.NewPCG(seed, 1)), begun: time.Now()}
	for _, e := range []**redistest.Embedded{&m.from, &m.to} {
		var err error
		if *e, err = redistest.Embed(); err != nil {
			t.Fatal(err)
		}
	}
	m.partitions = 1 + m.rng.IntN(5)
	m.offset = time.Duration(m.rng.IntN(1200)-600) * time.Millisecond
	m.to.StepClock(m.offset)
	return m
}

func (m *moving) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.story = append(m.story, fmt.Sprintf("%9.3f  ", time.Since(m.begun).Seconds())+fmt.Sprintf(format, args...))
}

// list are the jobs: each second, some of them sharded, lasting or following another.
func (m *moving) list() (list []jobs.Job) {
	write := func(_ context.Context, r *jobs.Run) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.writes = append(m.writes, audit.Write{
			No: len(m.writes) + 1, At: time.Now(), Job: r.Job(), Tick: r.Tick(), Run: r.ID(), Token: r.Token(), Node: r.Node(), Attempt: r.Attempt(),
			Try: r.Try(), Shard: r.Shard(), Shards: r.Shards(), Trigger: r.Trigger().String(), Phase: audit.Start,
		})
	}
	for i := range 8 {
		list = append(list, jobs.Job{
			Name: fmt.Sprintf("job-%d", i), Schedule: "* * * * * *", CatchUp: jobs.CatchUpAll, CatchUpMax: 1000, TTL: 4 * time.Second, OnCrash: jobs.OnCrashRerun,
			Func: func(ctx context.Context, r *jobs.Run) error { write(ctx, r); return nil },
		})
	}
	list[0].Shards, list[1].Overlap = 3, jobs.OverlapQueue
	list[2].Schedule, list[2].After, list[2].CatchUp, list[2].CatchUpMax = "", []string{"job-3"}, 0, 0
	list[4].Schedule = "@every 4s"
	list[4].Func = func(ctx context.Context, r *jobs.Run) error {
		write(ctx, r)
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	return list
}

// start starts a process, at the old address with the new one beside it.
func (m *moving) start() {
	m.started++
	p := &proc{name: fmt.Sprintf("n%d", m.started), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	m.procs = append(m.procs, p)
	m.say("%s starts", p.name)
	run := func(client, next *redis.Client) error {
		reg := jobs.NewRegistry()
		for _, j := range m.list() {
			reg.MustAdd(j)
		}
		cfg := scheduler.Config{Name: p.name, Logger: slog.New(slog.NewTextHandler(&storyWriter{m}, nil)), DrainTimeout: 5 * time.Second, WaitForRedis: true}
		if next != nil {
			cfg.Next = next
		}
		n, err := scheduler.New(client, reg, cfg)
		if err != nil {
			return err
		}
		return n.Run(ctx)
	}
	go func() { // ends with ctx
		defer close(p.done)
		here, there := p.networks[0].Client(m.from.Options()), p.networks[1].Client(m.to.Options())
		defer here.Close()
		defer there.Close()
		err := run(here, there)
		if errors.Is(err, scheduler.ErrMoved) {
			m.say("%s follows", p.name)
			err = run(there, nil)
		}
		if err != nil {
			m.t.Errorf("%s: %v", p.name, err)
		}
	}()
}

// kill cuts a process off for good: nothing that it sends arrives any more.
func (m *moving) kill(p *proc) {
	m.say("%s is killed", p.name)
	m.disturbed = append(m.disturbed, audit.Disturbance{Span: audit.Span{From: time.Now(), Until: time.Now().Add(time.Second)}, What: "kill", Nodes: []string{p.name}})
	p.networks[0].Cut()
	p.networks[1].Cut()
	m.procs = slices.DeleteFunc(m.procs, func(x *proc) bool { return x == p })
	p.stop()
	<-p.done
	p.networks[0].Heal()
	p.networks[1].Heal()
}

type storyWriter struct{ m *moving }

func (w *storyWriter) Write(p []byte) (int, error) {
	w.m.say("    %s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// ender ends two clients for good at their nth command together, before or after it is carried out.
type ender struct {
	at    int // 0: never
	after bool
	count int
}

var errMoverKilled = errors.New("killed")

func (e *ender) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *ender) pass(do func() error) error {
	e.count++
	gone := &net.OpError{Op: "read", Err: errMoverKilled}
	if e.at != 0 && (e.count > e.at || e.count == e.at && !e.after) {
		return gone
	}
	if err := do(); e.at == 0 || e.count != e.at {
		return err
	}
	return gone
}

func (e *ender) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := e.pass(func() error { return next(ctx, cmd) })
		cmd.SetErr(err)
		return err
	}
}

func (e *ender) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := e.pass(func() error { return next(ctx, cmds) })
		if errors.Is(err, errMoverKilled) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}
