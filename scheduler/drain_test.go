package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/sharding"
)

// handedOver is by when a drained node has given away what it owns: its beat, then those of the others.
const handedOver = 2250 * time.Millisecond

// trio is three nodes with many jobs of each second, warm.
func trio(c *cluster, s *sink) ([]*running, []jobs.Job) {
	var list []jobs.Job
	for i := range 40 {
		list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
	}
	var nodes []*running
	for i, name := range []string{"a", "b", "c"} {
		nodes = append(nodes, c.start(name, scheduler.Config{}, list...))
		time.Sleep(time.Duration(137*(i+1)) * time.Millisecond) // they do not beat together
	}
	time.Sleep(4 * time.Second)
	return nodes, list
}

// longestLag is how late the latest of the scheduled runs began whose ticks lie between two instants.
func (s *sink) longestLag(from, to time.Time) (lag time.Duration, runs int) {
	for _, r := range s.all() {
		if r.tick.After(from) && !r.tick.After(to) && r.trigger != jobs.TriggerManual {
			lag, runs = max(lag, r.at.Sub(r.tick)), runs+1
		}
	}
	return lag, runs
}

// ranOn counts the runs of a node with ticks after an instant.
func (s *sink) ranOn(node string, after time.Time) (n int) {
	for _, r := range s.all() {
		if r.node == node && r.tick.After(after) {
			n++
		}
	}
	return n
}

// each checks that every job ran each tick of its schedule between two instants.
func (s *sink) each(t *testing.T, list []jobs.Job, from, to time.Time) {
	t.Helper()
	want := int(to.Truncate(time.Second).Sub(from.Truncate(time.Second)) / time.Second)
	for _, j := range list {
		n := 0
		for _, r := range s.all() {
			if r.job == j.Name && r.tick.After(from) && !r.tick.After(to) && r.trigger != jobs.TriggerManual {
				n++
			}
		}
		if n != want {
			t.Errorf("%s ran %d of %d ticks between %s and %s", j.Name, n, want, from, to)
		}
	}
}

func view(t *testing.T, i *scheduler.Inspector, name string) scheduler.NodeView {
	t.Helper()
	for _, v := range must[[]scheduler.NodeView](t)(i.Nodes(t.Context())) {
		if v.Name == name {
			return v
		}
	}
	return scheduler.NodeView{}
}

// An operator drains a node: it hands over without a tick that waits for the grace, and rests until it is resumed.
func TestDrainNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		nodes, list := trio(c, s)
		start := time.Now()
		time.Sleep(5 * time.Second)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1140 * time.Millisecond))) // b has just beaten
		ordinary, _ := s.longestLag(start, time.Now())
		drained := time.Now()
		if err := i.DrainNode(ctx, "b", scheduler.DrainOptions{Author: "ann", Reason: "new\ndisk"}); err != nil {
			t.Fatal(err)
		}
		if rests := must[bool](t)(i.NodeRests(ctx, "b")); rests {
			t.Error("the node rests before it can have heard of it")
		}
		time.Sleep(1050 * time.Millisecond) // b has heard, and nobody else
		for _, v := range must[[]scheduler.JobView](t)(i.Jobs(ctx)) {
			must[string](t)(i.Trigger(ctx, v.Name, scheduler.TriggerOptions{}))
		}
		time.Sleep(handedOver - 1050*time.Millisecond)
		if err := nodes[1].Ready(); err == nil || !strings.Contains(err.Error(), "draining: drained by ann: new disk") {
			t.Errorf("ready: %v", err)
		}
		if rests := must[bool](t)(i.NodeRests(ctx, "b")); !rests {
			t.Errorf("the node does not rest: %+v", view(t, i, "b"))
		}
		time.Sleep(10 * time.Second)
		v := view(t, i, "b")
		if v.State != "draining" || v.Owned != 0 || v.Jobs != len(list) || v.Drain == nil || v.Drain.Author != "ann" || v.Drain.Reason != "new disk" || v.Drain.Since == nil {
			t.Errorf("got %+v, %+v", v, v.Drain)
		}
		if n := s.ranOn("b", drained.Add(handedOver)); n != 0 {
			t.Errorf("it ran %d ticks after the hand-over", n)
		}
		resumed := time.Now()
		if err := i.ResumeNode(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := nodes[1].Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if v := view(t, i, "b"); v.State != "active" || v.Owned == 0 || v.Drain != nil {
			t.Errorf("got %+v", v)
		}
		if n := s.ranOn("b", resumed.Add(time.Second)); n < 8*5 {
			t.Errorf("it ran %d ticks since it was resumed", n)
		}
		lag, runs := s.longestLag(drained, time.Now())
		t.Logf("longest lag of %d runs through drain and resume %s, before %s", runs, lag, ordinary)
		if lag > ordinary+20*time.Millisecond {
			t.Errorf("a tick was %s late; before it was %s", lag, ordinary)
		}
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); r.trigger == jobs.TriggerManual && late > 300*time.Millisecond {
				t.Errorf("a run of %s by hand began %s late on %s, in the hand-over", r.job, late, r.node)
			}
		}
		s.each(t, list, start, time.Now())
		for _, words := range []string{"drained: nothing new is claimed", " by=ann", "resumed: the node claims again"} {
			if n := c.logs.count(words); n != 1 {
				t.Errorf("%q was said %d times, want once", words, n)
			}
		}
		c.end()
		s.check(t)
	})
}

// A drain concerns the name: the process that follows drains too, from its first beat, and leaves newer
// definitions of its own alone until it is resumed.
func TestDrainOutlivesTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		nodes, list := trio(c, s)
		if err := i.DrainNode(ctx, "b", scheduler.DrainOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		c.leave(nodes[1])
		if rests := must[bool](t)(i.NodeRests(ctx, "b")); !rests {
			t.Error("a node that has left does not rest")
		}
		if err := i.DrainNode(ctx, "b", scheduler.DrainOptions{Author: "bob"}); err != nil { // nobody has the name, but it is drained
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		restarted := time.Now()
		again := c.start("b", scheduler.Config{Revision: "9"}, changed(list)...)
		time.Sleep(10 * time.Second)
		if v := view(t, i, "b"); v.State != "draining" || v.Owned != 0 || again.Ready() == nil {
			t.Errorf("got %+v, ready: %v", v, again.Ready())
		}
		if n := s.ranOn("b", restarted); n != 0 {
			t.Errorf("it ran %d ticks", n)
		}
		lag, _ := s.longestLag(restarted, time.Now())
		if lag > 20*time.Millisecond {
			t.Errorf("a node that only came to rest made a tick %s late", lag)
		}
		s.each(t, list, restarted, time.Now())
		resumed := time.Now()
		if err := i.ResumeNode(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if n := s.ranOn("b", resumed.Add(6*time.Second)); n != 2*len(list) || again.Ready() != nil {
			t.Errorf("the newer definitions are its own, and it ran %d ticks of them; ready: %v", n, again.Ready())
		}
		c.end()
		s.check(t)
	})
}

// changed are the jobs with another policy: other definitions, the same ticks.
func changed(list []jobs.Job) []jobs.Job {
	var out []jobs.Job
	for _, j := range list {
		j.StartWithin = time.Hour
		out = append(out, j)
	}
	return out
}

// Drained and resumed each second, out of step with its beats, the node changes its mind all the time.
func TestDrainFlapping(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.inspector()
		_, list := trio(c, s)
		start := time.Now()
		for k := range 30 {
			act := func() error { return i.DrainNode(ctx, "b", scheduler.DrainOptions{Author: "ann"}) }
			if k%2 == 1 {
				act = func() error { return i.ResumeNode(ctx, "b") }
			}
			if err := act(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + 73*time.Millisecond)
		}
		if n := c.logs.count("drained: nothing new is claimed"); n < 10 {
			t.Errorf("it heard of %d drains: nothing flapped", n)
		}
		lag, runs := s.longestLag(start, time.Now())
		t.Logf("longest lag of %d runs %s", runs, lag)
		if lag > 20*time.Millisecond {
			t.Errorf("a tick was %s late", lag)
		}
		s.each(t, list, start, time.Now())
		c.end()
		s.check(t)
	})
}

func TestDrainRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i := t.Context(), c.inspector()
		refused(t, i.DrainNode(ctx, "a", scheduler.DrainOptions{}), scheduler.ErrUnknownNamespace)
		c.start("a", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(3 * time.Second)
		refused(t, i.DrainNode(ctx, "aa", scheduler.DrainOptions{}), scheduler.ErrUnknownNode, `"aa"`, "nodes list")
		refused(t, i.ResumeNode(ctx, "aa"), scheduler.ErrUnknownNode, `"aa"`)
		if err := i.ResumeNode(ctx, "a"); err != nil {
			t.Errorf("resume of a node that works: %v", err)
		}
		if d := must[map[string]scheduler.DrainView](t)(i.Drains(ctx)); len(d) != 0 {
			t.Errorf("drains: %v", d)
		}
		client := c.client()
		defer client.Close()
		if err := client.HSet(ctx, "{escapement}:drains", "a", "2|newer").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if v := view(t, i, "a"); v.State != "draining" || v.Drain == nil || v.Drain.Since != nil {
			t.Errorf("a drain of a newer format: %+v", v)
		}
		for k := range 999 {
			client.HSet(ctx, "{escapement}:drains", fmt.Sprint("n", k), "1|1|x|")
		}
		c.start("b", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(3 * time.Second)
		refused(t, i.DrainNode(ctx, "b", scheduler.DrainOptions{}), scheduler.ErrRefused, "1000")
		if err := i.ResumeNode(ctx, "a"); err != nil {
			t.Errorf("resume: %v", err)
		}
		roster := sharding.NewRoster(client, sharding.RosterConfig{})
		for _, m := range []sharding.Member{{State: "active"}, {State: "draining", Running: 1}, {State: "draining", Owned: 1}, {State: "draining"}} {
			m.ID, m.Name = "id", "x"
			if _, err := roster.Beat(ctx, m); err != nil {
				t.Fatal(err)
			}
			if rests := must[bool](t)(i.NodeRests(ctx, "x")); rests != (m.State == "draining" && m.Running+m.Owned == 0) {
				t.Errorf("%+v rests: %v", m, rests)
			}
		}
	})
}
