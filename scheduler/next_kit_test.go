package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// byHand is a move whose steps the test makes itself: it sets gates and notes and copies everything.
type byHand struct {
	t        *testing.T
	from, to *redistest.Embedded
	id       string
}

func (m byHand) gates(e *redistest.Embedded, state, peer string) {
	for p := range 16 {
		if err := e.Mini().Set(fmt.Sprintf("{escapement:%d}:gate", p), "1|0||"+state+"|"+m.id+"|"+peer); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m byHand) note(e *redistest.Embedded, role, state, peer string) {
	e.Mini().HSet("{escapement}:control", "move", fmt.Sprint("1|", m.id, "|", role, "|", state, "|", peer, "|", time.Now().UnixMilli()))
}

func (m byHand) seal() {
	m.note(m.from, "from", "sealing", "there")
	m.gates(m.from, "sealed", "there")
	m.note(m.from, "from", "sealed", "there")
}

// undo is an abort.
func (m byHand) undo() {
	m.gates(m.from, "open", "")
	m.from.Mini().HDel("{escapement}:control", "move")
}

// reserve makes the control record over there, as the first step of a copy does.
func (m byHand) reserve() {
	for field, value := range map[string]string{"format": "1", "partitions": "16", "generation": ""} {
		m.to.Mini().HSet("{escapement}:control", field, value)
	}
	m.note(m.to, "to", "filling", "here")
	m.gates(m.to, "filling", "here")
}

// fill copies all keys but those of the roster.
func (m byHand) fill() {
	m.to.Restore(m.from.Snapshot())
	for _, key := range []string{"roster", "seen", "sets", "sets:seen"} {
		m.to.Mini().Del("{escapement}:" + key)
	}
	m.reserve()
}

func (m byHand) open() {
	m.note(m.to, "to", "opening", "here")
	m.gates(m.to, "open", "")
	m.note(m.to, "to", "open", "here")
}

// moving runs a test in virtual time over two servers.
func moving(t *testing.T, test func(t *testing.T, c *cluster, m byHand)) {
	t.Helper()
	bubble(t, func(t *testing.T, c *cluster, from *redistest.Embedded) {
		to, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		time.Sleep(time.Second / 2) // what a test does after whole seconds, it does between ticks: some of one could be handed back else
		test(t, c, byHand{t: t, from: from, to: to, id: "01900000-0000-7000-8000-000000000001"})
	})
}

// traveller is a process: a node, and after a move the node that takes its place.
type traveller struct {
	mu    sync.Mutex
	nodes []*scheduler.Node
	stop  context.CancelFunc
	done  chan struct{}
	err   error
}

// all are the nodes it has had.
func (p *traveller) all() []*scheduler.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[:len(p.nodes):len(p.nodes)]
}

// travel runs a node on from that knows where the namespace may move to, and follows it there.
func (c *cluster) travel(name string, m byHand, list ...jobs.Job) *traveller {
	c.t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &traveller{stop: stop, done: make(chan struct{})}
	sit := func(client, next *redis.Client) *scheduler.Node {
		cfg := scheduler.Config{Name: name, Logger: slog.New(slog.NewTextHandler(io.Writer(c.logs), nil))}
		if next != nil {
			cfg.Next = next
		}
		n, err := scheduler.New(client, reg, cfg)
		if err != nil {
			c.t.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.nodes = append(p.nodes, n)
		return n
	}
	here, there := m.from.Client(), m.to.Client()
	n := sit(here, there)
	go func() {
		defer close(p.done)
		defer here.Close()
		defer there.Close()
		if p.err = n.Run(ctx); errors.Is(p.err, scheduler.ErrMoved) {
			p.err = sit(there, nil).Run(ctx)
		}
	}()
	return p
}

func (p *traveller) end(t *testing.T) {
	t.Helper()
	p.stop()
	<-p.done
	if p.err != nil {
		t.Error(p.err)
	}
}

// punctual wants every tick of every job once, none missing, and none later than late after it was due, or after open
// when it was due in the time before that.
func punctual(t *testing.T, s *sink, shut, open time.Time, jobs int) {
	t.Helper()
	s.check(t)
	last, worst := map[string]time.Time{}, time.Duration(0)
	for _, r := range s.all() {
		if was, ran := last[r.job]; ran && r.tick.Sub(was) != time.Second {
			t.Errorf("%s: tick %s after %s", r.job, r.tick.Format(time.TimeOnly), was.Format(time.TimeOnly))
		}
		last[r.job] = r.tick
		from := r.tick
		if !r.tick.Before(shut.Add(-time.Second)) && r.tick.Before(open) {
			from = open
		}
		if r.at.Sub(from) > worst {
			worst = r.at.Sub(from)
		}
	}
	if worst > late {
		t.Errorf("a tick started %s late, at most %s is right", worst, late)
	}
	if len(last) != jobs {
		t.Errorf("%d of %d jobs ran", len(last), jobs)
	}
	for job, tick := range last {
		if time.Since(tick) > 4*time.Second {
			t.Errorf("%s has not run since %s", job, tick.Format(time.TimeOnly))
		}
	}
	t.Logf("the latest start was %s after it was possible", worst.Round(time.Millisecond))
}

func many(n int, s *sink) (list []jobs.Job) {
	for i := range n {
		list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
	}
	return list
}

// notReady wants every node to say why it takes no work.
func notReady(t *testing.T, n *scheduler.Node, words string) {
	t.Helper()
	if err := n.Ready(); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("node %s, which should not be ready: %v; want %q", n.Name(), err, words)
	}
}
