package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/ops"
)

// handedOver bounds the handover of a drained node: its heartbeat, then the other nodes'.
const handedOver = 2250 * time.Millisecond

// onTime is how late a tick may be for which no node had to wait.
const onTime = 50 * time.Millisecond

// trio is three nodes with many jobs of each second, warm.
func trio(c *cluster, s *sink) ([]*running, []jobs.Job) {
	list := many(24, s)
	for i, name := range []string{"a", "b", "c"} {
		c.start(name, scheduler.Config{}, list...)
		time.Sleep(time.Duration(137*(i+1)) * time.Millisecond) // they do not beat together
	}
	time.Sleep(4 * time.Second)
	return c.nodes, list
}

// An operator drains a node: it hands over without a tick that waits for the grace, and rests until
// it is resumed.
func TestDrainNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.ops()
		nodes, list := trio(c, s)
		start := time.Now()
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1140 * time.Millisecond))) // b has just beaten
		drained := time.Now()
		if err := i.DrainNode(ctx, "b", ops.DrainOptions{Author: "ann", Reason: "new\ndisk"}); err != nil {
			t.Fatal(err)
		}
		if rests := must[bool](t)(i.NodeIdle(ctx, "b")); rests {
			t.Error("the node rests before it can have heard of it")
		}
		time.Sleep(1050 * time.Millisecond) // b has seen the drain, and no other node has
		for _, v := range must[ops.Page[ops.JobView]](t)(i.ListJobs(ctx, ops.JobFilter{})).Items {
			must[string](t)(i.Trigger(ctx, v.Name, ops.TriggerOptions{}))
		}
		time.Sleep(handedOver - 1050*time.Millisecond)
		notReady(t, nodes[1].Node, "draining: drained by ann: new disk")
		if rests := must[bool](t)(i.NodeIdle(ctx, "b")); !rests {
			t.Errorf("the node does not rest: %+v", c.node("b"))
		}
		time.Sleep(6 * time.Second)
		v := c.node("b")
		if v.State != "draining" || v.Owned != 0 || v.Jobs != len(list) || v.Drain == nil || v.Drain.Author != "ann" || v.Drain.Reason != "new disk" || v.Drain.Since.IsZero() {
			t.Errorf("got %+v, %+v", v, v.Drain)
		}
		if n := s.ranOn("b", drained.Add(handedOver)); n != 0 {
			t.Errorf("it ran %d ticks after the hand-over", n)
		}
		resumed := time.Now()
		if err := i.ResumeNode(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		if err := nodes[1].Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if v = c.node("b"); v.State != "active" || v.Owned == 0 || v.Drain != nil {
			t.Errorf("got %+v", v)
		}
		if n := s.ranOn("b", resumed.Add(time.Second)); n < 2*v.Owned { // the other nodes have to see the resume first
			t.Errorf("it ran %d ticks since it was resumed, and owns %d jobs", n, v.Owned)
		}
		if latest := s.each(t, list, start, time.Now()); latest > onTime {
			t.Errorf("a tick was %s late", latest)
		}
		for _, r := range s.all() {
			if late := r.at.Sub(r.tick); r.trigger == jobs.TriggerManual && late > 300*time.Millisecond {
				t.Errorf("a run of %s by hand began %s late on %s, in the hand-over", r.job, late, r.node)
			}
		}
		for _, words := range []string{"drained: nothing new is claimed", " by=ann", "resumed: the node claims again"} {
			if n := c.logs.count(words); n != 1 {
				t.Errorf("%q was said %d times, want once", words, n)
			}
		}
		c.end()
		s.check(t)
	})
}

// A drain concerns the name: the process that follows drains too, from its first beat, and leaves
// newer definitions of its own alone until it is resumed.
func TestDrainOutlivesTheProcess(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.ops()
		nodes, list := trio(c, s)
		if err := i.DrainNode(ctx, "b", ops.DrainOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		c.leave(nodes[1])
		if rests := must[bool](t)(i.NodeIdle(ctx, "b")); !rests {
			t.Error("a node that has left does not rest")
		}
		if err := i.DrainNode(ctx, "b", ops.DrainOptions{Author: "bob"}); err != nil { // no node has the name, but it is drained
			t.Fatal(err)
		}
		var changed []jobs.Job // other definitions, the same ticks
		for _, j := range list {
			j.StartWithin = time.Hour
			changed = append(changed, j)
		}
		restarted := time.Now()
		again := c.start("b", scheduler.Config{Revision: "9"}, changed...)
		time.Sleep(6 * time.Second)
		notReady(t, again.Node, "draining")
		if v := c.node("b"); v.State != "draining" || v.Owned != 0 || s.ranOn("b", restarted) != 0 {
			t.Errorf("it ran %d ticks: %+v", s.ranOn("b", restarted), v)
		}
		if latest := s.each(t, list, restarted, time.Now()); latest > onTime {
			t.Errorf("a node that only came to rest made a tick %s late", latest)
		}
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

// Redis is emptied under a drained node. The node logs that the drain is lost, and not that an
// operator resumed the node; the audit names the drain. Each node registers its jobs again, and
// logs the registration once.
func TestDrainIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, ctx, i := &sink{}, t.Context(), c.ops()
		nodes, _ := trio(c, s)
		if err := i.DrainNode(ctx, "b", ops.DrainOptions{Author: "ann", Reason: "new disk"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		c.redis().FlushAll(ctx)
		time.Sleep(8 * time.Second)
		for words, want := range map[string]int{
			"the drain of this node was lost with Redis' data": 1, "resumed: the node claims again": 0, "every job is registered again": 3,
			"drained_by=ann": 1, "Redis had lost runs of this node that go on or ended lately": 3,
		} {
			if n := c.logs.count(words); n != want {
				t.Errorf("%q is logged %d times, want %d", words, n, want)
			}
		}
		var named []string
		for _, a := range must[ops.Page[ops.ActionView]](t)(i.Audit(ctx, ops.ActionFilter{})).Items {
			if a.Target == "node b" {
				named = append(named, a.Action+": "+a.Detail)
			}
		}
		if want := "records lost: the drain of this node is lost, and the node claims again: drained by ann: new disk"; len(named) != 1 || named[0] != want || nodes[1].Ready() != nil {
			t.Errorf("the audit has %q, want %q once; ready: %v", named, want, nodes[1].Ready())
		}
		c.end()
		s.check(t)
	})
}

func TestDrainRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i := t.Context(), c.ops()
		refused(t, i.DrainNode(ctx, "a", ops.DrainOptions{}), ops.ErrUnknownNamespace)
		c.start("a", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(3 * time.Second)
		refused(t, i.DrainNode(ctx, "aa", ops.DrainOptions{}), ops.ErrUnknownNode, `"aa"`, "nodes list")
		refused(t, i.ResumeNode(ctx, "aa"), ops.ErrUnknownNode, `"aa"`)
		if err := i.ResumeNode(ctx, "a"); err != nil {
			t.Errorf("resume of a node that works: %v", err)
		}
		if d := must[map[string]ops.DrainView](t)(i.Drains(ctx)); len(d) != 0 {
			t.Errorf("drains: %v", d)
		}
		client := c.redis()
		if err := client.HSet(ctx, "{escapement}:drains", "a", "2|newer").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if v := c.node("a"); v.State != "draining" || v.Drain == nil || !v.Drain.Since.IsZero() {
			t.Errorf("a drain of a newer format: %+v", v)
		}
		for k := range 999 {
			client.HSet(ctx, "{escapement}:drains", fmt.Sprint("n", k), "1|1|x|")
		}
		c.start("b", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(3 * time.Second)
		refused(t, i.DrainNode(ctx, "b", ops.DrainOptions{}), ops.ErrRefused, "1000")
		if err := i.ResumeNode(ctx, "a"); err != nil {
			t.Errorf("resume: %v", err)
		}
	})
}

// The runs of a drained node run on, however long, and a stop waits for them as ever. The node's
// next ticks go to other nodes.
func TestDrainLeavesRunsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i := t.Context(), c.ops()
		long := lasting(20*time.Second, make(chan time.Time, 9), make(chan error, 9))
		long.Schedule = "@yearly"
		a := c.start("a", scheduler.Config{}, long)
		time.Sleep(3 * time.Second)
		id := must[string](t)(i.Trigger(ctx, long.Name, ops.TriggerOptions{}))
		time.Sleep(time.Second)
		if err := i.DrainNode(ctx, "a", ops.DrainOptions{Author: "ann"}); err != nil {
			t.Fatal(err)
		}
		waits := must[string](t)(i.Trigger(ctx, long.Name, ops.TriggerOptions{}))
		time.Sleep(10 * time.Second)
		if v := c.node("a"); v.Running != 1 || v.State != "draining" || must[bool](t)(i.NodeIdle(ctx, "a")) {
			t.Errorf("got %+v", v)
		}
		if err := roster.New(c.redis(), roster.Config{}).Leave(ctx, a.ID()); err != nil {
			t.Fatal(err)
		}
		if must[bool](t)(i.NodeIdle(ctx, "a")) {
			t.Error("a run of a node that is gone goes on, and yet it rests")
		}
		if r := must[ops.RunView](t)(i.WaitRun(ctx, id)); r.Outcome != jobs.OutcomeSucceeded || r.Node != "a" {
			t.Errorf("got %+v", r)
		}
		time.Sleep(3 * time.Second)
		if r := must[ops.RunView](t)(i.GetRun(ctx, waits)); r.Reason != "pending: no living node can run the job" {
			t.Errorf("got %+v", r)
		}
		if !must[bool](t)(i.NodeIdle(ctx, "a")) {
			t.Errorf("it does not rest: %+v", c.node("a"))
		}
		b := c.start("b", scheduler.Config{}, long)
		time.Sleep(3 * time.Second)
		if err := i.DrainNode(ctx, "b", ops.DrainOptions{Author: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		c.leave(a)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a node at rest took %s to stop", took)
		}
		c.leave(b)
		if r := must[ops.RunView](t)(i.GetRun(ctx, waits)); r.Outcome != jobs.OutcomeSucceeded || r.Node != "b" {
			t.Errorf("got %+v", r)
		}
	})
}

// Nodes are listed by name, whichever came first.
func TestNodesByName(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		for _, name := range []string{"c", "a", "b"} {
			c.start(name, scheduler.Config{}, eachSecond("job", &sink{}))
			time.Sleep(time.Second)
		}
		var names string
		for _, n := range must[[]ops.NodeView](t)(c.ops().ListNodes(t.Context())) {
			names += n.Name
		}
		if names != "abc" {
			t.Errorf("got %s, want abc", names)
		}
	})
}
