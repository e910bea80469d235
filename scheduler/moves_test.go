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
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// late is how late a tick may start, from when it was due or the namespace was open again.
const late = 2500 * time.Millisecond

// byHand is a move whose steps the test makes itself: it sets gates and notes and copies
// everything.
type byHand struct {
	t        *testing.T
	from, to *redistest.Embedded
	id       string
}

func (m byHand) gates(e *redistest.Embedded, state, peer string) {
	for p := range partitions {
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
	for field, value := range map[string]string{"format": "2", "partitions": fmt.Sprint(partitions), "generation": ""} {
		m.to.Mini().HSet("{escapement}:control", field, value)
	}
	m.note(m.to, "to", "filling", "here")
	m.gates(m.to, "filling", "here")
}

// fill copies all keys but the roster's.
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
		time.Sleep(300 * time.Millisecond) // what a test does after whole seconds, it does between ticks: some of one could be handed back else
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

// travel runs a node on from, with to as its Next, and follows the node there.
func (c *cluster) travel(name string, m byHand, list ...jobs.Job) *traveller {
	c.t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &traveller{stop: stop, done: make(chan struct{})}
	sit := func(client, next *redis.Client) *scheduler.Node {
		cfg := scheduler.Config{Name: name, Partitions: partitions, Logger: slog.New(slog.NewTextHandler(io.Writer(c.logs), nil))}
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

// punctual wants every tick of every job once, none missing, and none later than late after it was
// due, or after open when it was due in the time before that.
func punctual(t *testing.T, s *sink, list []jobs.Job, began, shut, open time.Time) {
	t.Helper()
	s.check(t)
	s.each(t, list, began, time.Now().Add(-late))
	for _, r := range s.all() {
		from := r.tick
		if !r.tick.Before(shut.Add(-time.Second)) && r.tick.Before(open) {
			from = open
		}
		if r.at.Sub(from) > late {
			t.Errorf("%s of %s started %s late, at most %s is right", r.tick, r.job, r.at.Sub(from), late)
		}
	}
}

// A node does not go to a Redis with the state of another move, of no move, or of this move half
// way.
func TestNextThatIsNotReady(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		p := c.travel("a", m, many(3, s)...)
		time.Sleep(5 * time.Second)
		m.seal()
		other := m
		other.id = "01900000-0000-7000-8000-000000000002"
		for _, step := range []func(){
			func() {}, m.reserve, func() { m.note(m.to, "to", "opening", "here") },
			func() { m.gates(m.to, "open", "") }, func() { other.note(m.to, "to", "open", "here") },
			func() { m.note(m.to, "from", "open", "here") }, func() { m.to.Mini().HSet("{escapement}:control", "move", "2|a newer one") },
			m.to.Stop,
		} {
			step()
			time.Sleep(3 * time.Second)
			if len(p.all()) != 1 {
				t.Fatal("the node went to a Redis that is not open by this move")
			}
			notReady(t, p.all()[0], "its jobs move to there")
		}
		notReady(t, p.all()[0], "next: ")
		if err := m.to.Restart(); err != nil {
			t.Fatal(err)
		}
		m.fill()
		m.open()
		time.Sleep(5 * time.Second)
		if len(p.all()) != 2 {
			t.Error("it does not go where the namespace is open")
		}
		p.end(t)
		s.check(t)
	})
}

// Without Next a node stays, is not ready, and logs once what to do. After the undo the node goes
// on by itself.
func TestMoveUndone(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprint("next ", next), func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				list := many(6, s)
				for i := range 2 {
					cfg := scheduler.Config{}
					if next {
						there := m.to.Client()
						defer there.Close()
						cfg.Next = there
					}
					c.start(fmt.Sprint("n", i), cfg, list...)
				}
				began := time.Now().Add(2 * time.Second)
				time.Sleep(5 * time.Second)
				m.seal()
				shut := time.Now()
				time.Sleep(6 * time.Second)
				for _, n := range c.nodes {
					notReady(t, n.Node, "its jobs move to there")
				}
				m.undo()
				open := time.Now()
				time.Sleep(5 * time.Second)
				for _, n := range c.nodes {
					if err := n.Ready(); err != nil {
						t.Error(err)
					}
				}
				punctual(t, s, list, began, shut, open)
				if closed, again := c.logs.count("a move has closed the namespace"), c.logs.count("no move closes the namespace any more"); closed != 2 || again != 2 {
					t.Errorf("said %d times that it is closed, %d that it is open again; want once for each of two nodes", closed, again)
				}
				if told := c.logs.count("start a node there when the move has opened it"); told != 2 && !next || told != 0 && next {
					t.Errorf("the next step was told %d times", told)
				}
			})
		})
	}
}

// Reads at the namespace's old place fail with an error that names the new place.
func TestReadsWhereTheNamespaceWas(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		n := c.start("a", scheduler.Config{}, many(1, &sink{})...)
		time.Sleep(3 * time.Second)
		c.leave(n)
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() {}, ""},
			{m.seal, "is sealed by a move to there"},
			{func() { m.fill(); m.open(); m.note(m.from, "from", "moved", "there") }, "has moved to there; this is what was here"},
			{func() { m.note(m.from, "to", "filling", "there") }, "is being moved here from there"},
			{func() { m.note(m.from, "to", "burnt", "there") }, "was undone"},
			{func() { m.from.Mini().HSet("{escapement}:control", "move", "2|a newer one") }, "cannot be read"},
			{func() { m.note(m.from, "to", "open", "there") }, ""},
		} {
			step.do()
			synctest.Wait()
			words, err := c.ops().Closed(t.Context())
			if err != nil || (step.want == "") != (words == "") || !strings.Contains(words, step.want) {
				t.Errorf("said %q (%v), want %q", words, err, step.want)
			}
		}
		m.undo()
	})
}
