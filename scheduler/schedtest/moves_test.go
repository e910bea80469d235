package schedtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/move"
)

var (
	moveSeed  = flag.Uint64("moves.seed", 0, "play this seed only and tell its story")
	moveSeeds = flag.Int("moves.seeds", 12, "how many seeds TestMoves plays")
	moveFirst = flag.Uint64("moves.first", 1, "the first of them")
)

// TestMoves moves a namespace under load, in virtual time, by a program that is killed again and again before or after
// one of its commands, sometimes gives up half way and begins anew, while nodes are killed and started. Then every job
// must have run each of its ticks once, by increasing tokens, and the old Redis must refuse.
func TestMoves(t *testing.T) {
	if *moveSeed != 0 {
		synctest.Test(t, func(t *testing.T) { newMoving(t, *moveSeed).play() })
		return
	}
	kills, aborts := 0, 0
	var worst time.Duration
	for seed := *moveFirst; seed < *moveFirst+uint64(*moveSeeds) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMoving(t, seed)
			m.play()
			kills, aborts, worst = kills+m.kills, aborts+m.aborts, max(worst, m.worst)
			if t.Failed() {
				t.Logf("again, with its story: -run TestMoves -moves.seed %d", seed)
			}
		})
	}
	t.Logf("%d moves from seed %d on: the mover was killed %d times and gave up %d times; the latest start %s after it was possible",
		*moveSeeds, *moveFirst, kills, aborts, worst)
}

// moving is one move that is played.
type moving struct {
	t        *testing.T
	rng      *rand.Rand
	begun    time.Time
	from, to *redistest.Embedded
	procs    []*proc
	started  int

	shut, opened  time.Time // when nothing was granted, at the longest
	kills, aborts int
	worst         time.Duration
	partitions    int

	wrong []string // what judge found

	mu    sync.Mutex
	story []string
	runs  []movedRun
}

type movedRun struct {
	job      string
	shard    int
	tick, at time.Time
	token    int64
	attempt  int
}

// proc is a process: a node, and after the move the one that takes its place.
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
	m.to.StepClock(time.Duration(m.rng.IntN(1200)-600) * time.Millisecond)
	return m
}

func (m *moving) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.story = append(m.story, fmt.Sprintf("%9.3f  ", time.Since(m.begun).Seconds())+fmt.Sprintf(format, args...))
}

func (m *moving) bad(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// list are the jobs: each second, some of them sharded, lasting or following another.
func (m *moving) list() (list []jobs.Job) {
	write := func(_ context.Context, r *jobs.Run) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.runs = append(m.runs, movedRun{r.Job(), r.Shard(), r.Tick(), time.Now(), r.Token(), r.Attempt()})
	}
	for i := range 8 {
		list = append(list, jobs.Job{
			Name: fmt.Sprintf("job-%d", i), Schedule: "* * * * * *", CatchUp: jobs.CatchUpAll, CatchUpMax: 1000, TTL: 4 * time.Second, OnCrash: jobs.OnCrashRerun,
			Func: func(ctx context.Context, r *jobs.Run) error { write(ctx, r); return nil },
		})
	}
	list[0].Shards, list[1].Overlap = 3, jobs.OverlapQueue
	list[2].Schedule, list[2].After, list[2].CatchUp, list[2].CatchUpMax = "", "job-3", 0, 0
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

// ender ends two clients for good at their nth command together: before that is sent, or after it was carried out.
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

// step runs one step of the move by processes that are killed, one after another, until one carries it out.
func (m *moving) step(name string, do func(*move.Mover) error) {
	for try := 0; ; try++ {
		e := &ender{}
		if try < 3 && m.rng.IntN(3) > 0 {
			e.at, e.after = 1+m.rng.IntN(60), m.rng.IntN(2) == 0
		}
		from, to := m.from.Client(), m.to.Client()
		from.AddHook(e)
		to.AddHook(e)
		mover, err := move.New(from, to, move.Config{Partitions: m.partitions, FromName: "old", ToName: "new"})
		if err == nil {
			err = do(mover)
		}
		_, _ = from.Close(), to.Close()
		m.say("move %s: %d commands, killed at %d: %v", name, e.count, e.at, err)
		switch {
		case err == nil:
			return
		case e.at != 0 && e.count >= e.at:
			m.kills++
		case name == "seal" && errors.Is(err, ledger.ErrRefused) && try < 20: // something still ran
		default:
			m.t.Errorf("move %s: %v", name, err)
			return
		}
		time.Sleep(time.Duration(m.rng.Int64N(int64(time.Second))))
	}
}

func (m *moving) seal(o move.SealOptions) func(*move.Mover) error {
	return func(v *move.Mover) error { _, err := v.Seal(m.t.Context(), o); return err }
}

// play plays it all and judges.
func (m *moving) play() {
	for range 2 + m.rng.IntN(3) {
		m.start()
	}
	nap := func(most time.Duration) { time.Sleep(time.Duration(m.rng.Int64N(int64(most)))) }
	time.Sleep(6 * time.Second)
	nap(time.Second)
	m.shut = time.Now()
	for m.rng.IntN(3) == 0 && m.aborts < 2 { // it is given up
		m.step("seal", m.seal(move.SealOptions{Drain: 10 * time.Second}))
		if m.rng.IntN(2) == 0 {
			m.step("copy", func(v *move.Mover) error { _, err := v.Copy(m.t.Context()); return err })
		}
		m.step("abort", func(v *move.Mover) error { _, err := v.Abort(m.t.Context()); return err })
		m.aborts++
		nap(4 * time.Second)
	}
	if m.rng.IntN(2) == 0 && len(m.procs) > 2 {
		m.kill(m.procs[m.rng.IntN(len(m.procs))])
	}
	m.step("seal", m.seal(move.SealOptions{Drain: 10 * time.Second, CancelRunning: m.rng.IntN(4) == 0}))
	if m.rng.IntN(2) == 0 {
		m.start()
	}
	m.step("copy", func(v *move.Mover) error { _, err := v.Copy(m.t.Context()); return err })
	m.step("open", func(v *move.Mover) error { _, err := v.Open(m.t.Context()); return err })
	m.opened = time.Now()
	if m.rng.IntN(2) == 0 {
		m.start() // as if nothing had happened
	}
	time.Sleep(15 * time.Second)
	m.refuses()
	for _, p := range m.procs {
		p.stop()
	}
	for _, p := range m.procs {
		<-p.done
	}
	m.judge()
	m.books()
	for _, w := range m.wrong {
		m.t.Error(w)
	}
	if m.t.Failed() {
		m.t.Log("\n" + strings.Join(m.story, "\n"))
	}
	m.close()
}

func (m *moving) close() {
	m.from.Close()
	m.to.Close()
	time.Sleep(3 * time.Second) // connections in the making end
}

// TestMovesByHand shows that the judge can find fault: what people do without a move, a copy of all keys and new nodes
// while the old ones go on, runs ticks twice.
func TestMovesByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(t, 1)
		m.start()
		time.Sleep(6500 * time.Millisecond)
		m.shut, m.opened = time.Now(), time.Now()
		m.to.Restore(m.from.Snapshot())
		m.from, m.to = m.to, m.from
		m.start()
		time.Sleep(15 * time.Second)
		for _, p := range m.procs {
			p.stop()
			<-p.done
		}
		if m.judge(); !strings.Contains(strings.Join(m.wrong, "\n"), "granted twice") {
			t.Errorf("the judge found %q; want ticks that were granted twice", m.wrong)
		}
		m.close()
	})
}

// refuses wants the old Redis to refuse whoever comes back to it.
func (m *moving) refuses() {
	client := m.from.Client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err == nil {
		_, err = i.Trigger(m.t.Context(), "job-0", scheduler.TriggerOptions{})
	}
	if !errors.Is(err, ledger.ErrClosed) {
		m.t.Errorf("a trigger at the old Redis after the move: %v, want %v", err, ledger.ErrClosed)
	}
}

// judge holds the runs against the schedules: each tick once, or skipped with a true reason, by growing tokens.
func (m *moving) judge() {
	type one struct { // a shard is a lease of its own
		job   string
		shard int
	}
	ran, token, skipped := map[one]map[int64]bool{}, map[one]int64{}, m.skipped()
	granted := map[string]bool{}
	var latest time.Time
	for _, r := range m.runs {
		k, tick := one{r.job, r.shard}, r.tick.Unix()
		if ran[k] == nil {
			ran[k] = map[int64]bool{}
		}
		attempt := fmt.Sprint(k, tick, r.attempt)
		if granted[attempt] || r.attempt > 1 && !ran[k][tick] {
			m.bad("%v %d, attempt %d: granted twice, or without the one before it", k, tick, r.attempt)
		}
		granted[attempt], ran[k][tick] = true, true
		if r.token <= token[k] {
			m.bad("%v %d: token %d after %d", k, tick, r.token, token[k])
		}
		token[k], latest = r.token, r.at
		if r.tick.Before(m.shut) || r.tick.After(m.opened) {
			m.worst = max(m.worst, r.at.Sub(r.tick))
		}
	}
	if len(ran) != 10 || latest.Before(m.opened.Add(10*time.Second)) {
		m.bad("%d jobs and shards ran, want 10; the last run was %s after the new side was open", len(ran), latest.Sub(m.opened))
	}
	for k, ticks := range ran {
		first, last := slices.Min(slices.Collect(maps.Keys(ticks))), slices.Max(slices.Collect(maps.Keys(ticks)))
		for tick := first; tick <= last; tick++ {
			if due := k.job != "job-4" || tick%4 == 0; due && !ticks[tick] && !skipped[k.job][tick] {
				m.bad("%v has not run its tick %d, and no row says why", k, tick)
			}
		}
	}
}

// skipped are the ticks that the ledger has recorded as skipped: because the one before went on while the namespace was
// closed, or because of the job that is followed.
func (m *moving) skipped() map[string]map[int64]bool {
	client := m.to.Client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		m.t.Fatal(err)
	}
	rows, err := i.Runs(context.Background(), scheduler.RunFilter{Outcome: "skipped"})
	if err != nil {
		m.t.Error(err)
	}
	skipped := map[string]map[int64]bool{}
	for _, r := range rows {
		if skipped[r.Job] == nil {
			skipped[r.Job] = map[int64]bool{}
		}
		until := r.Tick
		if r.Until != nil {
			until = r.Until
		}
		for at := time.Time(*r.Tick).Unix(); at <= time.Time(*until).Unix(); at++ {
			skipped[r.Job][at] = true
		}
	}
	return skipped
}

// books wants the chains of the new side to close.
func (m *moving) books() {
	client := m.to.Client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		m.t.Fatal(err)
	}
	wrong, err := i.Verify(context.Background(), "")
	if err != nil {
		m.t.Error(err)
	}
	for _, w := range wrong {
		m.t.Errorf("%s: %s", w.Job, w.What)
	}
}
