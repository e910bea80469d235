package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// late is how late a tick may start, from when it was due or the namespace was open again.
const late = 2500 * time.Millisecond

// Nodes that know where the namespace moves to go on there, each tick once, in order and soon.
func TestNodesFollowAMove(t *testing.T) {
	for _, idle := range []bool{false, true} { // with nothing due, no script says that the namespace is closed
		t.Run(fmt.Sprint("idle ", idle), func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				list := many(20, s)
				if idle {
					list = []jobs.Job{eachSecond("yearly", s)}
					list[0].Schedule = "@yearly"
				}
				var all []*traveller
				for i := range 3 {
					all = append(all, c.travel(fmt.Sprint("n", i), m, list...))
				}
				time.Sleep(10*time.Second + 300*time.Millisecond)
				m.seal()
				shut := time.Now()
				time.Sleep(1500 * time.Millisecond)
				m.fill()
				time.Sleep(2 * time.Second)
				for _, p := range all {
					notReady(t, p.all()[0], "its jobs move to there")
				}
				m.open()
				open := time.Now()
				time.Sleep(2 * time.Second)
				m.note(m.from, "from", "moved", "there")
				time.Sleep(8 * time.Second)
				for _, p := range all {
					if len(p.all()) != 2 {
						t.Fatalf("%d nodes of one process", len(p.all()))
					}
					if err := p.all()[1].Ready(); err != nil {
						t.Errorf("node %s, which has moved: %v", p.all()[1].Name(), err)
					}
				}
				if !idle {
					punctual(t, s, shut, open, 20)
				}
				for _, p := range all {
					p.end(t)
				}
				if n := c.logs.count("a move has closed the namespace"); n != 3 {
					t.Errorf("it was said %d times that the namespace is closed, want once for each node", n)
				}
				if n := c.logs.count("Redis refused a call"); n != 0 {
					t.Errorf("%d calls are called refused", n)
				}
				if nodes := m.from.Mini().Exists("{escapement}:roster"); nodes {
					t.Error("nodes that have moved are in the old roster")
				}
			})
		})
	}
}

// A node that starts when the namespace has moved goes there at once, and makes nothing anew where it was.
func TestStartAfterTheMove(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		t.Run(fmt.Sprint("emptied ", emptied), func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				first := c.start("first", scheduler.Config{}, many(3, s)...)
				time.Sleep(3 * time.Second)
				c.leave(first)
				m.seal()
				m.fill()
				m.open()
				if emptied {
					m.from.Mini().FlushAll()
				}
				p := c.travel("second", m, many(3, s)...)
				synctest.Wait()
				if len(p.all()) != 2 {
					t.Errorf("%d nodes: the first stays where the namespace was", len(p.all()))
				}
				time.Sleep(5 * time.Second)
				p.end(t)
				s.check(t)
				if m.from.Mini().Exists("{escapement}:roster") || emptied && len(m.from.Mini().Keys()) > 0 {
					t.Errorf("it left something behind: %v", m.from.Mini().Keys())
				}
				if len(s.ticks("job-0")) < 5 {
					t.Errorf("ran %d times", len(s.ticks("job-0")))
				}
				if emptied {
					m.from.Restore(m.to.Snapshot()) // for the books, which the test's end looks at
				}
			})
		})
	}
}

// A Redis that knows of another move, of none, or of this one half way, is not gone to.
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

// Without Next a node stays, is not ready, and says once what to do. When the move is undone it goes on by itself.
func TestMoveUndone(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprint("next ", next), func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				for i := range 2 {
					cfg := scheduler.Config{}
					if next {
						there := m.to.Client()
						defer there.Close()
						cfg.Next = there
					}
					c.start(fmt.Sprint("n", i), cfg, many(10, s)...)
				}
				time.Sleep(5*time.Second + 300*time.Millisecond)
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
				punctual(t, s, shut, open, 10)
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

// A node that starts where a move brings the namespace waits, and claims as soon as it is open.
func TestNodeWaitsForTheMove(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		first := c.start("first", scheduler.Config{}, many(10, s)...)
		time.Sleep(5 * time.Second)
		m.seal()
		shut := time.Now()
		c.leave(first)
		m.fill()
		before := len(s.all())
		waits := c.startOver(m.to.Client(), "second", scheduler.Config{}, many(10, s)...)
		time.Sleep(6 * time.Second)
		notReady(t, waits.Node, "its jobs are being moved here from here")
		if after := len(s.all()); after != before {
			t.Errorf("%d runs of a namespace that is being filled", after-before)
		}
		m.open()
		open := time.Now()
		time.Sleep(5 * time.Second)
		if err := waits.Ready(); err != nil {
			t.Error(err)
		}
		punctual(t, s, shut, open, 10)
		c.leave(waits)
	})
}

// A move that was undone has burnt the place it went to: a node there stays idle, and says where the jobs are.
func TestBurntPlace(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		m.reserve()
		m.note(m.to, "to", "burnt", "here")
		m.gates(m.to, "burnt", "here")
		n := c.startOver(m.to.Client(), "lost", scheduler.Config{}, many(2, s)...)
		time.Sleep(5 * time.Second)
		notReady(t, n.Node, "was undone; use that Redis")
		if len(s.all()) != 0 || c.logs.count("the Redis that the jobs stayed in") != 1 {
			t.Errorf("%d runs", len(s.all()))
		}
		c.leave(n)
		home := c.start("home", scheduler.Config{}, many(2, s)...) // the books of this test
		time.Sleep(2 * time.Second)
		c.leave(home)
	})
}

// A run that goes on at the seal is finished before the node leaves for the other Redis.
func TestMoveDrainsWhatRuns(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		ended := make(chan time.Time, 1)
		slow := jobs.Job{Name: "slow", Schedule: "@every 30s", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error {
			time.Sleep(10 * time.Second)
			ended <- time.Now()
			return nil
		}}
		p := c.travel("a", m, slow)
		time.Sleep(31 * time.Second)
		m.seal()
		m.fill()
		m.open() // too early, as no move does it
		time.Sleep(15 * time.Second)
		select {
		case <-ended:
		default:
			t.Error("the run was not let end")
		}
		if len(p.all()) != 2 {
			t.Errorf("%d nodes", len(p.all()))
		}
		if got := outcomes(c.runs("slow")); got["succeeded"] != 1 {
			t.Errorf("history %v", got)
		}
		p.end(t)
	})
}
