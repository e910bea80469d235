package scheduler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/testseam"
	"github.com/escapement/escapement/scheduler/ops"
)

// partitions is how many a namespace of these tests has: fewer than usual, for each costs the race
// detector a lot.
const partitions = 2

// whenDue makes nodes claim ticks when they are due: between ticks no run is in flight.
var whenDue = scheduler.Config{ClaimAhead: -1}

// withIDs are settings of a node whose ids come from newID.
func withIDs(newID func() string) (cfg scheduler.Config) {
	testseam.Of(&cfg).NewID = newID
	return cfg
}

// keyOf is a key of the partition of a job.
func keyOf(job, what string) string {
	return fmt.Sprintf("{escapement:%d}:%s", ledger.Partition(job, partitions), what)
}

// begun holds the tests that run in parallel.
var begun sync.Map

// parallel runs a test in parallel, also when called twice.
func parallel(t *testing.T) {
	if _, again := begun.LoadOrStore(t, true); !again {
		t.Parallel()
	}
}

// bubble runs a test with a cluster in virtual time, over the embedded Redis, in parallel to other
// tests.
func bubble(t *testing.T, test func(t *testing.T, c *cluster, server *redistest.Embedded)) {
	t.Helper()
	parallel(t)
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		c := &cluster{t: t, logs: &logs{}, client: server.Client}
		defer time.Sleep(2 * time.Second) // go-redis may be about to dial once more, a second after it could not
		defer c.end()
		test(t, c, server)
	})
}

// eachSecond is a job that ticks each second and writes its runs to a sink.
func eachSecond(name string, s *sink) jobs.Job {
	return jobs.Job{Name: name, Schedule: "* * * * * *", TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
		s.write(r)
		return nil
	}}
}

// many are n jobs that tick each second: job-00, job-01, and so on.
func many(n int, s *sink) (list []jobs.Job) {
	for i := range n {
		list = append(list, eachSecond(fmt.Sprintf("job-%02d", i), s))
	}
	return list
}

// lasting is a job that ticks each minute and works for some time, unless its context ends before.
// It reports its start and the cause of its context's end, nil for none.
func lasting(d time.Duration, started chan<- time.Time, ended chan<- error) jobs.Job {
	return jobs.Job{Name: "lasting", Schedule: "@every 1m", TTL: 6 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
		started <- time.Now()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}}
}

// forever is how long a lasting job works that ends by its context alone.
const forever = 1000 * time.Hour

// sink is where a test's jobs record their runs, independent of the scheduler's records.
type sink struct {
	mu   sync.Mutex
	runs []sunk
}

type sunk struct {
	job, node, param string
	tick, at         time.Time
	shard, attempt   int
	token            int64
	trigger          jobs.Trigger
}

func (s *sink) write(r *jobs.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, sunk{r.Job(), r.Node(), r.Param(), r.Tick(), time.Now(), r.Shard(), r.Attempt(), r.Token(), r.Trigger()})
}

func (s *sink) all() []sunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// check holds P1 and P3 against the sink: each attempt of a tick's shard runs once and not before
// its time, and tokens of a job grow in the order of writing. Shards of one tick may write in any
// order.
func (s *sink) check(t *testing.T) {
	t.Helper()
	ran, token := make(map[string]string), make(map[string]int64)
	for _, r := range s.all() {
		key := fmt.Sprint(r.job, " ", r.tick.Format(time.RFC3339Nano), " shard ", r.shard, " attempt ", r.attempt)
		if by, twice := ran[key]; twice && r.trigger != jobs.TriggerManual {
			t.Errorf("P1: %s ran on %s and on %s", key, by, r.node)
		}
		ran[key] = r.node
		if r.at.Before(r.tick) {
			t.Errorf("%s ran %s early", key, r.tick.Sub(r.at))
		}
		fence := fmt.Sprint(r.job, " shard ", r.shard)
		if r.token <= token[fence] {
			t.Errorf("P3: %s: token %d after %d", key, r.token, token[fence])
		}
		token[fence] = r.token
	}
}

// each checks that every job ran once for each second from an instant up to another, by its
// schedule, and returns how late the latest of these runs began.
func (s *sink) each(t *testing.T, list []jobs.Job, from, to time.Time) (latest time.Duration) {
	t.Helper()
	ran, listed := make(map[string]int), make(map[string]bool)
	for _, j := range list {
		listed[j.Name] = true
	}
	for _, r := range s.all() {
		if listed[r.job] && !r.tick.Before(from) && r.tick.Before(to) && r.trigger != jobs.TriggerManual {
			ran[fmt.Sprint(r.job, r.tick.UnixMilli())]++
			latest = max(latest, r.at.Sub(r.tick))
		}
	}
	for _, j := range list {
		for at := from.Add(time.Second - 1).Truncate(time.Second); at.Before(to); at = at.Add(time.Second) {
			if n := ran[fmt.Sprint(j.Name, at.UnixMilli())]; n != max(1, j.Shards) {
				t.Errorf("%s ran %d times at %s", j.Name, n, at.Format(time.TimeOnly))
			}
		}
	}
	return latest
}

// ticks are the ticks of a job that ran, in order of writing.
func (s *sink) ticks(job string) (ticks []time.Time) {
	for _, r := range s.all() {
		if r.job == job {
			ticks = append(ticks, r.tick)
		}
	}
	return ticks
}

// ranOn counts the runs with ticks after an instant on the nodes whose names begin so.
func (s *sink) ranOn(node string, after time.Time) (n int) {
	for _, r := range s.all() {
		if strings.HasPrefix(r.node, node) && r.tick.After(after) {
			n++
		}
	}
	return n
}

// logs collects what nodes log.
type logs struct{ redistest.Log }

func (l *logs) count(what string) int { return strings.Count(l.String(), what) }

// cluster is a namespace with nodes in one process.
type cluster struct {
	t      *testing.T
	logs   *logs
	client func() *redis.Client
	nodes  []*running

	partitions int                  // of the first node's configuration
	handlers   map[string]jobs.Func // of the nodes that are started next
}

type running struct {
	*scheduler.Node
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func (c *cluster) start(name string, cfg scheduler.Config, list ...jobs.Job) *running {
	return c.startOver(c.client(), name, cfg, list...)
}

// startOver starts a node over a client, which it closes.
func (c *cluster) startOver(client *redis.Client, name string, cfg scheduler.Config, list ...jobs.Job) *running {
	c.t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	for name, f := range c.handlers {
		if err := reg.Handle(name, f); err != nil {
			c.t.Fatal(err)
		}
	}
	cfg.Name, cfg.Logger, cfg.Partitions = name, slog.New(slog.NewTextHandler(io.Writer(c.logs), nil)), cmp.Or(cfg.Partitions, c.partitions, partitions)
	c.partitions = cfg.Partitions
	n, err := scheduler.New(client, reg, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Node: n, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = n.Run(ctx)
		if err := client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			c.t.Error(err)
		}
	}()
	c.nodes = append(c.nodes, r)
	return r
}

// leave stops a node and waits until Run has returned.
func (c *cluster) leave(r *running) {
	c.t.Helper()
	r.stop()
	<-r.done
	if r.err != nil {
		c.t.Errorf("node %s: %v", r.Name(), r.err)
	}
}

// end stops all nodes, audits the records, and prints the nodes' logs if the test has failed.
func (c *cluster) end() {
	c.t.Helper()
	for _, r := range c.nodes {
		r.stop()
	}
	for _, r := range c.nodes {
		c.leave(r)
	}
	books, err := c.ops().Verify(context.Background(), ops.VerifyFilter{})
	if err != nil {
		c.t.Error(err)
	}
	for _, w := range books.Violations {
		c.t.Errorf("P2: %s: %s", w.Job, w.What)
	}
	for _, u := range books.UnknownFormat {
		if u.Kind != "definition" {
			c.t.Errorf("%s of %s cannot be read: %s", u.Key, u.Job, u.What)
		}
	}
	if c.t.Failed() {
		c.t.Log(c.logs)
	}
}

// redis is a client that lasts as long as the test.
func (c *cluster) redis(hooks ...redis.Hook) *redis.Client {
	client := c.client()
	for _, h := range hooks {
		client.AddHook(h)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// ops is a client that lasts as long as the test.
func (c *cluster) ops(hooks ...redis.Hook) *ops.Client {
	c.t.Helper()
	return must[*ops.Client](c.t)(ops.New(c.redis(hooks...), ""))
}

// runs reads the history of a job, newest first.
func (c *cluster) runs(job string) []ops.RunView {
	c.t.Helper()
	return must[ops.Page[ops.RunView]](c.t)(c.ops().ListRuns(context.Background(), ops.RunFilter{Job: job})).Items
}

// job reads a job.
func (c *cluster) job(name string) ops.JobView {
	c.t.Helper()
	return must[ops.JobView](c.t)(c.ops().GetJob(context.Background(), name))
}

// node reads a node, which need not be there.
func (c *cluster) node(name string) (v ops.NodeView) {
	c.t.Helper()
	for _, n := range must[[]ops.NodeView](c.t)(c.ops().ListNodes(context.Background())) {
		if n.Name == name {
			v = n
		}
	}
	return v
}

// promote promotes, which must succeed.
func (c *cluster) promote(generation string, o ops.PromoteOptions) ops.Promotion {
	c.t.Helper()
	return must[ops.Promotion](c.t)(c.ops().Promote(context.Background(), generation, o))
}

// outcomes counts ticks by outcome and reason. A row of a definition that was replaced when no tick
// was due counts for none.
func outcomes(runs []ops.RunView) map[string]int64 {
	count := make(map[string]int64)
	for _, r := range runs {
		key, ticks := r.Outcome.String(), int64(1)
		if r.Reason != "" {
			key += "(" + r.Reason + ")"
		}
		if r.Count != nil {
			if *r.Count == 0 && r.Reason == "definition replaced" {
				continue
			}
			ticks = max(1, *r.Count)
		}
		count[key] += ticks
	}
	return count
}

// nothing fails the test on an error.
func nothing(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// must is for calls that have to succeed.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused wants an error of a kind, with words.
func refused(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: no word of %q", err, w)
		}
	}
}

// notReady wants Ready to return an error with these words.
func notReady(t *testing.T, n *scheduler.Node, words string) {
	t.Helper()
	if err := n.Ready(); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("node %s, which should not be ready: %v; want %q", n.Name(), err, words)
	}
}

// around is a client's hook that does something before and after each call of one of the ledger's
// scripts, and may put an error in the place of its answer.
type around struct {
	script        string
	before, after func()
	answer        func() error
}

func (a around) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		its := calls(cmd, a.script)
		if its && a.before != nil {
			a.before()
		}
		err := next(ctx, cmd)
		if its && a.after != nil {
			a.after()
		}
		if its && a.answer != nil {
			if instead := a.answer(); instead != nil {
				cmd.SetErr(instead)
				return instead
			}
		}
		return err
	}
}

// calls reports whether a command calls a script of the ledger.
func calls(cmd redis.Cmder, script string) bool {
	return len(cmd.Args()) > 1 && slices.ContainsFunc(ledger.Scripts(), func(s *ledger.Script) bool {
		return s.Name() == script && (cmd.Args()[1] == s.Hash() || cmd.Args()[1] == s.Source())
	})
}
