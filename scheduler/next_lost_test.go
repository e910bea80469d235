package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// run makes all the steps of a move.
func (m byHand) run() {
	m.seal()
	m.fill()
	m.open()
	m.note(m.from, "from", "moved", "there")
}

// once wants no tick of a job to have run twice, on whichever side.
func once(t *testing.T, s *sink) {
	t.Helper()
	ran := make(map[string]string)
	for _, r := range s.all() {
		key := fmt.Sprint(r.job, " ", r.tick.Format(time.RFC3339Nano))
		if by := ran[key]; by != "" {
			t.Errorf("%s ran on %s and on %s", key, by, r.node)
		}
		ran[key] = r.node
	}
}

// The old Redis is emptied after the move while nodes that have not followed are there: they make nothing anew. Those to
// whom nothing was due, and who were never answered closed, neither.
func TestOldSideEmptiedUnderItsNodes(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		rare := eachSecond("rare", s)
		rare.Schedule = "@every 1m"
		stays := c.start("forgotten", scheduler.Config{}, append(many(2, s), rare)...)
		idle := c.start("idle", scheduler.Config{}, rare)
		time.Sleep(5 * time.Second)
		m.run()
		there := c.startOver(m.to.Client(), "new", scheduler.Config{}, append(many(2, s), rare)...)
		time.Sleep(12 * time.Second)
		notReady(t, stays.Node, "its jobs move to there")
		notReady(t, idle.Node, "its jobs move to there")
		m.from.Mini().FlushAll()
		time.Sleep(2 * time.Minute)
		for _, n := range []*running{stays, idle} {
			notReady(t, n.Node, "this Redis has lost the namespace in the middle of move "+m.id)
			notReady(t, n.Node, "restart this node with the Redis where it is")
		}
		if m.from.Mini().Exists("{escapement}:control") {
			t.Error("the namespace was made anew where it was")
		}
		if n := c.logs.count("is not made anew here"); n != 2 {
			t.Errorf("it was said %d times, want once for each of two nodes", n)
		}
		c.leave(there)
		c.leave(stays)
		c.leave(idle)
		once(t, s)
		m.from.Restore(m.to.Snapshot()) // for the books, which the test's end looks at
	})
}

// The new Redis loses everything while it is filled and a node waits there: nothing runs there, also when the move is undone.
func TestNewSideLostWhileANodeWaits(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		c.start("home", scheduler.Config{}, many(2, s)...)
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
		once(t, s)
		if n := len(s.all()) - before; n < 10 {
			t.Errorf("%d runs since the move was undone", n)
		}
		m.seal() // tried again, and to its end
		time.Sleep(2 * time.Second)
		m.fill()
		m.open()
		time.Sleep(4 * time.Second)
		if err := waits.Ready(); err != nil {
			t.Error("it does not go on where the namespace is open: ", err)
		}
		c.leave(waits)
		once(t, s)
	})
}

// A node that starts where nothing is any more goes by what Next says.
func TestStartWhereNothingIs(t *testing.T) {
	for _, c := range []struct {
		name, role, state string
		moved             bool
		words             string // of the error
	}{
		{"open", "to", "open", true, ""},
		{"gone on", "from", "moved", true, ""},
		{"going on", "from", "sealing", true, ""},
		{"filling", "to", "filling", false, "in the middle of move"},
		{"opening", "to", "opening", false, "in the middle of move"},
		{"burnt", "to", "burnt", false, "unset Next (redis.next) to begin anew here"},
		{"newer", "2", "what", false, "update this program"},
		{"off", "to", "open", false, "it cannot be seen whether it has moved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			moving(t, func(t *testing.T, cl *cluster, m byHand) {
				s := &sink{}
				m.reserve()
				m.note(m.to, c.role, c.state, "third")
				m.gates(m.to, "sealed", "third")
				if c.name == "off" {
					m.to.Stop()
				}
				p := cl.travel("a", m, many(3, s)...)
				if synctest.Wait(); c.words != "" {
					time.Sleep(3 * time.Second)
					<-p.done
				}
				time.Sleep(5 * time.Second)
				if len(s.all()) > 0 || m.from.Mini().Exists("{escapement}:control") {
					t.Errorf("%d runs in a Redis that is empty", len(s.all()))
				}
				if moved := len(p.all()) == 2; moved != c.moved {
					t.Errorf("went to Next: %v", moved)
				}
				p.stop()
				<-p.done
				if c.words == "" && p.err != nil || c.words != "" && (p.err == nil || !strings.Contains(p.err.Error(), c.words)) {
					t.Errorf("error %v, want %q", p.err, c.words)
				}
				home := cl.start("home", scheduler.Config{}, many(1, s)...) // the books of this test
				time.Sleep(2 * time.Second)
				cl.leave(home)
			})
		})
	}
}

// With nothing at either side, a node that knows of Next begins anew where it is.
func TestFirstStartWithNext(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		p := c.travel("first", m, many(1, s)...)
		time.Sleep(3 * time.Second)
		if len(p.all()) != 1 || len(s.all()) == 0 {
			t.Errorf("%d nodes, %d runs", len(p.all()), len(s.all()))
		}
		p.end(t)
	})
}

// The operator switches the old Redis off as soon as open has returned.
func TestOldSideOffAtOnce(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		p := c.travel("a", m, many(3, s)...)
		time.Sleep(5 * time.Second)
		m.seal()
		m.fill()
		time.Sleep(3 * time.Second)
		notReady(t, p.all()[0], "its jobs move to there")
		m.from.Stop()
		time.Sleep(5 * time.Second)
		if len(p.all()) != 1 {
			t.Fatal("it went to where nothing is open")
		}
		m.open()
		open := time.Now()
		for len(p.all()) != 2 && time.Since(open) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		took := time.Since(open)
		if t.Logf("it went after %s", took); took > 8*time.Second {
			t.Error("that is late")
		}
		time.Sleep(10 * time.Second)
		once(t, s)
		if at := s.ticks("job-0"); time.Since(at[len(at)-1]) > late {
			t.Errorf("the last of %d ticks that ran is %s", len(at), at[len(at)-1].Format(time.TimeOnly))
		}
		if err := m.from.Restart(); err != nil { // for the books, which the test's end looks at
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // clients dial until they succeed
		p.end(t)
		m.from.Restore(m.to.Snapshot())
	})
}

// A failover loses the note of the move at the old side, and not the gates: the nodes stay closed, say so once, and go where
// the move opens the namespace.
func TestNoteOfTheMoveLost(t *testing.T) {
	for _, undone := range []bool{false, true} {
		t.Run(fmt.Sprint("undone ", undone), func(t *testing.T) {
			moving(t, func(t *testing.T, c *cluster, m byHand) {
				s := &sink{}
				p := c.travel("a", m, many(20, s)...)
				stays := c.start("b", scheduler.Config{}, many(20, s)...)
				time.Sleep(5*time.Second + 300*time.Millisecond) // nothing runs
				m.seal()
				shut := time.Now()
				m.fill()
				m.from.Mini().HDel("{escapement}:control", "move") // before the nodes have seen it
				time.Sleep(3 * time.Second)
				lines := strings.Count(c.logs.String(), "\n")
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					notReady(t, p.all()[0], "its jobs move to there")
					notReady(t, stays.Node, "its jobs move to there")
				}
				if more := strings.Count(c.logs.String(), "\n") - lines; more > 0 {
					t.Errorf("%d lines in a minute", more)
				}
				if n, again := c.logs.count("a move has closed"), c.logs.count("no move closes"); n != 2 || again != 0 {
					t.Errorf("said %d times that it is closed, and %d that it is open", n, again)
				}
				if undone {
					m.undo()
				} else {
					m.open()
				}
				open := time.Now()
				time.Sleep(6 * time.Second)
				if err := p.all()[len(p.all())-1].Ready(); err != nil || len(p.all()) == 2 == undone {
					t.Errorf("%d nodes, the last is ready: %v", len(p.all()), err)
				}
				for _, r := range s.all() {
					if r.at.After(shut.Add(time.Second)) && r.at.Before(open) {
						t.Errorf("%s ran at %s, when the namespace was closed", r.job, r.at.Format(time.TimeOnly))
					}
				}
				for _, j := range many(20, s) {
					at := s.ticks(j.Name)
					if i := slices.IndexFunc(at, open.Before); i < 0 || at[i].Sub(open) > late {
						t.Errorf("%s ran %d times and not soon after the namespace was open again", j.Name, len(at))
					}
				}
				p.end(t)
				once(t, s)
			})
		})
	}
}

// A job whose upstream's partition is closed has not met a crowd there: it is registered when the partition is open.
func TestFollowAClosedPartition(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		home := c.start("home", scheduler.Config{}, many(16, s)...)
		time.Sleep(3 * time.Second)
		c.leave(home)
		after := eachSecond("after", s)
		after.Schedule, after.After = "", "job-0"
		for p := range 16 { // where job-0 lives
			if m.from.Mini().HGet(fmt.Sprintf("{escapement:%d}:jobs", p), "job-0") != "" {
				if err := m.from.Mini().Set(fmt.Sprintf("{escapement:%d}:gate", p), "1|0||sealed|"+m.id+"|there"); err != nil {
					t.Fatal(err)
				}
			}
		}
		n := c.start("next", scheduler.Config{}, append([]jobs.Job{after}, many(16, s)...)...)
		time.Sleep(4 * time.Second)
		notReady(t, n.Node, "its jobs move to there")
		m.undo()
		time.Sleep(8 * time.Second)
		if got := c.logs.count("too many jobs follow"); got > 0 {
			t.Errorf("the upstream's partition was closed, and it is said that %q", "too many jobs follow")
		}
		if len(s.ticks("after")) == 0 {
			t.Error("it has not run since its partition is open")
		}
	})
}

// Whoever reads where the namespace was is told that it is elsewhere.
func TestReadsWhereTheNamespaceWas(t *testing.T) {
	moving(t, func(t *testing.T, c *cluster, m byHand) {
		s := &sink{}
		n := c.start("a", scheduler.Config{}, many(1, s)...)
		time.Sleep(3 * time.Second)
		c.leave(n)
		said := func(want string) {
			t.Helper()
			c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
				words, err := i.Closed(ctx)
				if err != nil || (want == "") != (words == "") || !strings.Contains(words, want) {
					t.Errorf("said %q (%v), want %q", words, err, want)
				}
			})
		}
		said("")
		m.seal()
		said("is sealed by a move to there")
		m.run()
		said("has moved to there; this is what was here")
		m.note(m.from, "to", "filling", "there")
		said("is being moved here from there")
		m.note(m.from, "to", "burnt", "there")
		said("was undone")
		m.from.Mini().HSet("{escapement}:control", "move", "2|a newer one")
		said("cannot be read")
		m.note(m.from, "to", "open", "there")
		said("")
		m.undo()
	})
}
