package notify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/notify"
	"github.com/escapement/escapement/scheduler/ops"
)

// world is a namespace with nodes, in virtual time.
type world struct {
	t      *testing.T
	server *redistest.Embedded
	logs   *logs
	ended  sync.WaitGroup
	stops  []context.CancelFunc
}

// bubble runs a test in virtual time, over the embedded Redis.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		w := &world{t: t, server: server, logs: &logs{}}
		defer w.end()
		test(t, w)
	})
}

func (w *world) end() {
	for _, stop := range w.stops {
		stop()
	}
	w.ended.Wait()
	if w.t.Failed() {
		w.t.Log(w.logs.String())
	}
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Writer(w.logs), nil)) }

// node starts a node, which is stopped with the test or by stop.
func (w *world) node(name string, list ...jobs.Job) (stop func()) {
	w.t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	client := w.server.Client()
	n, err := scheduler.New(client, reg, scheduler.Config{Name: name, Logger: w.logger(), Revision: "1", SweepEvery: 5 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(func(ctx context.Context) {
		if err := n.Run(ctx); err != nil {
			w.t.Error(err)
		}
		_ = client.Close()
	})
}

// run runs f until the test ends or stop is called, which waits.
func (w *world) run(f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.stops = append(w.stops, cancel)
	done := make(chan struct{})
	w.ended.Go(func() { defer close(done); f(ctx) })
	return func() { cancel(); <-done }
}

// notifier is a running notifier; kill cuts it off from Redis, as if its node had died.
type notifier struct {
	stop   func()
	client *redis.Client
}

func (n *notifier) kill() { _ = n.client.Close() }

func (w *world) notifier(cfg notify.Config) *notifier {
	w.t.Helper()
	cfg.Logger = w.logger()
	client := w.server.Client()
	n, err := notify.New(client, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	stop := w.run(func(ctx context.Context) {
		if err := n.Run(ctx); err != nil && !errors.Is(err, redis.ErrClosed) { // as after kill
			w.t.Error(err)
		}
		_ = client.Close()
	})
	return &notifier{stop, client}
}

// client operates the namespace.
func (w *world) client() *ops.Client {
	w.t.Helper()
	client := w.server.Client()
	w.run(func(ctx context.Context) { <-ctx.Done(); _ = client.Close() })
	c, err := ops.New(client, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// logs collects log lines.
type logs struct{ redistest.Log }

// inbox is a target that keeps its messages.
type inbox struct {
	mu   sync.Mutex
	got  []notify.Message
	from []string
}

// target returns a target whose messages go to the inbox, under the name of a notifier.
func (b *inbox) target(name, by string) notify.Target {
	return notify.Target{Name: name, Func: func(_ context.Context, m notify.Message) error {
		b.put(by, m)
		return nil
	}}
}

func (b *inbox) put(by string, m notify.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got, b.from = append(b.got, m), append(b.from, by)
}

func (b *inbox) all() []notify.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// events are all events that came, as "job kind" or "job kind over".
func (b *inbox) events() (all []string) {
	for _, m := range b.all() {
		for _, e := range m.Events {
			word := fmt.Sprintf("%s %s", e.Job, e.Kind)
			if e.Recovered {
				word += " over"
			}
			all = append(all, word)
		}
	}
	return all
}

// want checks the events so far.
func (b *inbox) want(t *testing.T, events ...string) {
	t.Helper()
	if got := b.events(); !slices.Equal(got, events) {
		t.Errorf("events:\n got %q\nwant %q", got, events)
		for _, m := range b.all() {
			t.Log(m.Text)
		}
	}
}

// sick is a job that runs each minute and fails while broken is set.
func sick(name string, broken *atomic.Bool) jobs.Job {
	return jobs.Job{Name: name, Schedule: "* * * * *", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error {
		if broken.Load() {
			return errors.New("disk full")
		}
		return nil
	}}
}
