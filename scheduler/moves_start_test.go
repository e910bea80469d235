package scheduler_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler"
)

// A node that starts in an empty namespace follows the state at Next. With both sides empty it
// begins anew where it is.
func TestStartWhereNothingIs(t *testing.T) {
	for _, x := range []struct {
		name, role, state string
		moved, here       bool
		words             string // of the error
	}{
		{"first start", "", "", false, true, ""},
		{"open", "to", "open", true, false, ""},
		{"gone on", "from", "moved", true, false, ""},
		{"going on", "from", "sealing", true, false, ""},
		{"filling", "to", "filling", false, false, "during move"},
		{"opening", "to", "opening", false, false, "during move"},
		{"burnt", "to", "burnt", false, false, "unset Next (redis.next) to create a new one here"},
		{"newer", "2", "what", false, false, "update this program"},
		{"off", "to", "open", false, false, "it cannot be seen whether it has moved"},
	} {
		t.Run(x.name, func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				if x.role != "" {
					m.reserve()
					m.note(m.to, x.role, x.state, "third")
					m.gates(m.to, "sealed", "third")
				}
				if x.name == "off" {
					m.to.Stop()
				}
				p := c.travel("a", m, many(3, s)...)
				if synctest.Wait(); x.words != "" {
					<-p.done
				}
				time.Sleep(5 * time.Second)
				if here := m.from.Mini().Exists("{escapement}:control"); here != x.here || len(s.all()) > 0 != x.here {
					t.Errorf("begun anew: %t, %d runs", here, len(s.all()))
				}
				if moved := len(p.all()) == 2; moved != x.moved {
					t.Errorf("went to Next: %v", moved)
				}
				p.stop()
				<-p.done
				if x.words == "" && p.err != nil || x.words != "" && (p.err == nil || !strings.Contains(p.err.Error(), x.words)) {
					t.Errorf("error %v, want %q", p.err, x.words)
				}
				home := c.start("home", scheduler.Config{}, many(1, s)...) // the books of this test
				time.Sleep(2 * time.Second)
				c.leave(home)
			})
		})
	}
}

// A move that was undone has burnt its target: a node there stays idle, and its error names the
// jobs' place.
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

// The old Redis is emptied after the move while nodes that have not followed are there: they make
// nothing anew. Those to whom nothing was due, and who were never answered closed, neither.
func TestOldSideEmptiedUnderItsNodes(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		list := many(3, s)
		list[2].Schedule = "@every 1m"
		stays := c.start("forgotten", scheduler.Config{}, list...)
		idle := c.start("idle", scheduler.Config{}, list[2])
		time.Sleep(5 * time.Second)
		m.seal()
		m.fill()
		m.open()
		m.note(m.from, "from", "moved", "there")
		there := c.startOver(m.to.Client(), "new", scheduler.Config{}, list...)
		time.Sleep(12 * time.Second)
		notReady(t, stays.Node, "its jobs move to there")
		notReady(t, idle.Node, "its jobs move to there")
		m.from.Mini().FlushAll()
		time.Sleep(75 * time.Second)
		for _, n := range []*running{stays, idle} {
			notReady(t, n.Node, "this Redis has lost the namespace during move "+m.id)
			notReady(t, n.Node, "restart this node with the Redis that has it")
		}
		if m.from.Mini().Exists("{escapement}:control") {
			t.Error("the namespace was made anew where it was")
		}
		if n := c.logs.count("is not created again here"); n != 2 {
			t.Errorf("it was said %d times, want once for each of two nodes", n)
		}
		for _, n := range []*running{there, stays, idle} {
			c.leave(n)
		}
		s.check(t)
		m.from.Restore(m.to.Snapshot()) // for the books, which the test's end looks at
	})
}

// A node that stays at the sealed side does not log jobs as without a node while their nodes are at
// the other side. It does when the move is undone without those nodes.
func TestJobsOfASealedNamespaceAreNotWithoutNode(t *testing.T) {
	const words = "no living node can run this job"
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		slow := eachSecond("slow", s)
		slow.Labels = map[string]string{"disk": "slow"}
		c.start("stays", scheduler.Config{}, eachSecond("both", s), slow)
		goes := c.start("goes", scheduler.Config{Labels: slow.Labels}, eachSecond("both", s), slow)
		time.Sleep(5 * time.Second)
		m.seal()
		time.Sleep(2 * time.Second)
		c.leave(goes)
		time.Sleep(time.Minute)
		if n := c.logs.count(words); n != 0 {
			t.Errorf("said %d times while the namespace is closed", n)
		}
		m.undo()
		time.Sleep(time.Minute)
		if n := c.logs.count(words); n != 1 {
			t.Errorf("said %d times when the move is undone, want once", n)
		}
		if n := c.logs.count("no living node that holds it has its labels disk=slow"); n != 1 {
			t.Errorf("said %d times which labels it wants", n)
		}
	})
}

// The new Redis loses everything while it is filled and a node waits there: nothing runs there,
// also when the move is undone. When the move is tried again, the node goes on where the namespace
// is open.
func TestNewSideLostWhileANodeWaits(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		home := c.start("home", scheduler.Config{}, many(2, s)...)
		time.Sleep(5 * time.Second)
		m.seal()
		m.fill()
		waits := c.startOver(m.to.Client(), "waits", scheduler.Config{}, many(2, s)...)
		time.Sleep(4 * time.Second)
		notReady(t, waits.Node, "are being moved here")
		before := len(s.all())
		m.to.Mini().FlushAll()
		time.Sleep(6 * time.Second)
		if n := len(s.all()) - before; n > 0 {
			t.Errorf("%d runs at a place that a move was filling", n)
		}
		m.undo()
		time.Sleep(6 * time.Second)
		notReady(t, waits.Node, "this Redis has lost the namespace")
		if n := len(s.all()) - before; n < 10 || s.ranOn("waits", time.Time{}) > 0 {
			t.Errorf("%d runs since the move was undone", n)
		}
		m.seal()
		time.Sleep(2 * time.Second)
		m.fill()
		m.open()
		time.Sleep(4 * time.Second)
		if err := waits.Ready(); err != nil || s.ranOn("waits", time.Time{}) == 0 {
			t.Error("it does not go on where the namespace is open: ", err)
		}
		c.leave(waits)
		c.leave(home)
		s.check(t)
	})
}
