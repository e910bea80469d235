package scheduler_test

import (
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// longestLag bounds how late a tick may start because of a promotion.
const longestLag = 2500 * time.Millisecond

// startFar starts a node that Redis' answers take some milliseconds to reach, from 1 to 8, by its
// name. Without that its rounds, which take no time here, would go on for ever at the instant at
// which it found itself superseded: at a tick, so that it learns of a promotion when a tick is due,
// and never later.
func (c *cluster) startFar(server *redistest.Embedded, name string, cfg scheduler.Config, list ...jobs.Job) {
	var network redistest.Net
	network.Delay(time.Millisecond + time.Duration(crc32.ChecksumIEEE([]byte(name))%7000)*time.Microsecond)
	c.startOver(network.Client(server.Options()), name, cfg, list...)
}

// twoGenerations starts two nodes of generation one, which is active, and two of generation two.
func (c *cluster) twoGenerations(server *redistest.Embedded, cfg scheduler.Config, one, two []jobs.Job) {
	cfg.DrainTimeout = 5 * time.Second
	for _, n := range []string{"a0", "a1", "b0", "b1"} {
		if cfg.Generation = "one"; n[0] == 'a' {
			c.startFar(server, n, cfg, one...)
			continue
		}
		if n == "b0" {
			time.Sleep(3*time.Second + 137*time.Millisecond)
		}
		cfg.Generation = "two"
		c.startFar(server, n, cfg, two...)
	}
	time.Sleep(4*time.Second + 300*time.Millisecond)
}

// Promote, promote back, promote: every tick of every job runs once, and soon (P7).
func TestPromoteForthAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list := many(12, s)
		c.twoGenerations(server, scheduler.Config{}, list, list)
		began := time.Now()
		if a, b := s.ranOn("a", began.Add(-5*time.Second)), s.ranOn("b", time.Time{}); b != 0 || a == 0 {
			t.Errorf("before the promotion %d ran on generation one, %d on two", a, b)
		}
		waits := []time.Duration{0, 470 * time.Millisecond, 40 * time.Millisecond} // so two of them are right before a tick
		for n, generation := range []string{"two", "one", "two"} {
			time.Sleep(waits[n])
			p := c.promote(generation, ops.PromoteOptions{})
			if p.Switched.Count != len(list) || p.Created.Count+p.Orphaned.Count != 0 {
				t.Errorf("promotion of %s: %+v", generation, p)
			}
			settled := time.Now().Add(longestLag)
			time.Sleep(7 * time.Second)
			ran := map[string]int{"one": s.ranOn("a", settled), "two": s.ranOn("b", settled)}
			if ran[generation] == 0 || ran["one"]+ran["two"] != ran[generation] {
				t.Errorf("after the promotion of %s %v ran", generation, ran)
			}
		}
		end := time.Now()
		time.Sleep(3 * time.Second)
		if latest := s.each(t, list, began.Add(-3*time.Second), end); latest > longestLag {
			t.Errorf("a tick was %s late", latest)
		}
		if n := c.logs.count("on standby: another generation is active"); n != 4*2 {
			t.Errorf("said %d times that a node is on standby; want 2 at the start and 2 for each promotion", n)
		}
		if c.logs.count("job is not claimed by this node") != 0 {
			t.Error("a job on standby was told by itself")
		}
		c.end()
		s.check(t)
		for _, j := range list {
			if got := outcomes(c.runs(j.Name)); len(got) != 1 {
				t.Errorf("%s: %v: ticks were superseded, though the schedule is the same", j.Name, got)
			}
		}
	})
}

// Nodes learn of a promotion also where nothing comes due for an hour. A node on standby is ready,
// owns nothing and runs nothing.
func TestNodesOnStandby(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list := many(3, s)
		for i := range list {
			list[i].Schedule = "@every 1h"
		}
		c.twoGenerations(server, scheduler.Config{Revision: "9999"}, list, list)
		for _, generation := range []string{"one", "two", "one"} {
			if generation == "two" || c.node("b0").State != "standby" {
				c.promote(generation, ops.PromoteOptions{})
			}
			time.Sleep(3 * time.Second)
			for _, n := range c.nodes {
				v, active := c.node(n.Name()), n.Name()[0] == map[string]byte{"one": 'a', "two": 'b'}[generation]
				if want := map[bool]string{true: "active", false: "standby"}[active]; v.State != want || n.Ready() != nil {
					t.Errorf("while %s is active, %s of %s is %s, ready: %v", generation, v.Name, v.Generation, v.State, n.Ready())
				}
				if !active && (v.Owned != 0 || v.Standby != len(list) || v.Superseded != 0) {
					t.Errorf("node on standby: %+v", v)
				}
			}
			if j := c.job("job-00"); j.Generation != generation || j.Owner == "" || len(j.Standby) != 2 || j.Standby[0][0] == j.Owner[0] || len(j.Superseded) != 0 {
				t.Errorf("job %+v", j)
			}
		}
	})
}

// With shards, with a job that follows, and over a slow line: all shards and followers of all ticks
// run once.
func TestPromoteShardsAndFollowers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		wide := sharded(4, "* * * * * *", s, 150*time.Millisecond)
		wide.Overlap = jobs.OverlapQueue // a shard that another node takes is late enough for the next tick to meet it
		follows := eachSecond("next", s)
		follows.Schedule, follows.After = "", []string{"lead"}
		list := []jobs.Job{wide, eachSecond("lead", s), follows}
		wide.TTL = 6 * time.Second // not the same definition
		c.twoGenerations(server, scheduler.Config{}, list, append([]jobs.Job{wide}, list[1:]...))
		began := time.Now()
		var network redistest.Net
		network.Delay(15 * time.Millisecond)
		slow := network.Client(server.Options())
		defer slow.Close()
		i := must[*ops.Client](t)(ops.New(slow, ""))
		for n := range 6 {
			must[ops.Promotion](t)(i.Promote(t.Context(), []string{"two", "one"}[n%2], ops.PromoteOptions{}))
			time.Sleep(time.Second + time.Duration(n)*190*time.Millisecond)
		}
		end := time.Now()
		time.Sleep(4 * time.Second)
		if latest := s.each(t, list, began, end); latest > longestLag+500*time.Millisecond { // shards of other nodes, and followers, wait for a sweep
			t.Errorf("a tick was %s late", latest)
		}
		c.end()
		s.check(t)
	})
}

// A pattern gives some jobs to the other generation; the active one stays, and makes new jobs.
func TestPromoteByPattern(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		list := many(12, s)
		c.twoGenerations(server, scheduler.Config{}, list, list)
		began := time.Now()
		p := c.promote("two", ops.PromoteOptions{Pattern: "job-0*"})
		if p.Switched.Count != 10 || p.Orphaned.Count != 0 || p.Epoch != 1 {
			t.Errorf("%+v", p)
		}
		if p = c.promote("two", ops.PromoteOptions{Pattern: "job-0*"}); !p.Nothing() || p.Epoch != 1 {
			t.Errorf("repeated: %+v", p)
		}
		time.Sleep(6 * time.Second)
		for _, r := range s.all() {
			if r.tick.After(began.Add(longestLag)) && (r.node[:1] == "b") != strings.HasPrefix(r.job, "job-0") {
				t.Errorf("%s ran on %s", r.job, r.node)
			}
		}
		g := must[[]ops.GenerationView](t)(c.ops().ListGenerations(t.Context()))
		if len(g) != 2 || g[0].State != "active" || g[0].Running != 2 || g[1].State != "standby" || g[1].Running != 10 || g[0].Jobs != 12 || g[1].Jobs != 12 {
			t.Errorf("%+v", g)
		}
		more := append(list, eachSecond("more", s))
		c.start("b9", scheduler.Config{Generation: "two"}, more...)
		time.Sleep(3 * time.Second)
		if n := len(s.ticks("more")); n != 0 {
			t.Error("a generation that is not active made a new job")
		}
		c.start("a9", scheduler.Config{Generation: "one"}, more...)
		time.Sleep(5 * time.Second)
		if n := len(s.ticks("more")); n < 3 {
			t.Errorf("the active generation's new job ran %d times", n)
		}
		if latest := s.each(t, list, began.Add(-2*time.Second), time.Now().Add(-2*time.Second)); latest > longestLag {
			t.Errorf("a tick was %s late", latest)
		}
		c.end()
		s.check(t)
	})
}

// Runs keep their leases over a promotion, so nothing overlaps; CancelRunning cancels them.
func TestPromoteWhileSomethingRuns(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
			var running, most, onB atomic.Int64
			causes := make(chan error, 9)
			long := jobs.Job{Name: "long", Schedule: "@every 2s", TTL: 5 * time.Second, Overlap: jobs.OverlapQueue, Func: func(ctx context.Context, r *jobs.Run) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				if r.Node() == "b" {
					onB.Add(1)
				}
				select {
				case <-time.After(9 * time.Second):
					return nil
				case <-ctx.Done():
					causes <- context.Cause(ctx)
					return ctx.Err()
				}
			}}
			c.start("a", scheduler.Config{Generation: "one"}, long)
			time.Sleep(3 * time.Second)
			c.start("b", scheduler.Config{Generation: "two"}, long)
			time.Sleep(2 * time.Second)
			p := c.promote("two", ops.PromoteOptions{CancelRunning: cancel, Author: "me"})
			if got := p.Cancelled; (got == 1) != cancel {
				t.Errorf("%d runs were cancelled", got)
			}
			time.Sleep(2 * time.Second)
			if cancel && len(causes) == 1 {
				if cause := <-causes; !errors.Is(cause, jobs.ErrCancelled) {
					t.Errorf("the run ended with %v", cause)
				}
			} else if cancel || len(causes) > 0 {
				t.Errorf("cancel %v: %d runs ended", cancel, len(causes))
			}
			time.Sleep(4 * time.Second)
			if again := c.promote("two", ops.PromoteOptions{CancelRunning: true}); cancel && again.Cancelled != 0 {
				t.Errorf("%d runs of the promoted generation were cancelled", again.Cancelled)
			}
			time.Sleep(16 * time.Second)
			if most.Load() != 1 || onB.Load() == 0 {
				t.Errorf("%d at once, the promoted generation ran %d", most.Load(), onB.Load())
			}
		})
	}
}

// Nodes of a retired generation come back after days: they change and claim nothing, whatever their
// revision is.
func TestRetiredNodesStayHarmless(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		rare := func(name, schedule string) jobs.Job {
			j := eachSecond(name, s)
			j.Schedule = schedule
			return j
		}
		old := c.start("old", scheduler.Config{Generation: "one", Revision: "2030"}, rare("job", "@every 10s"), rare("gone", "@every 10s"))
		time.Sleep(2 * time.Second)
		fresh := c.start("new", scheduler.Config{Generation: "two", Revision: "2026"}, rare("job", "@every 20s"))
		time.Sleep(3 * time.Second)
		if p := c.promote("two", ops.PromoteOptions{}); p.Switched.Count != 1 || p.Orphaned.Count != 1 {
			t.Errorf("%+v", p)
		}
		time.Sleep(20 * time.Second)
		c.leave(old)
		c.leave(fresh) // else every second of these days is simulated
		time.Sleep(4 * 24 * time.Hour)
		fresh = c.start("new", scheduler.Config{Generation: "two", Revision: "2026"}, rare("job", "@every 20s"))
		time.Sleep(5 * time.Second)
		before, since := c.job("job"), time.Now()
		for _, revision := range []string{"2030", "", "2026"} {
			c.start("back"+revision, scheduler.Config{Generation: "one", Revision: revision}, rare("job", "@every 10s"), rare("gone", "@every 10s"), rare("more", "@every 10s"))
		}
		time.Sleep(30 * time.Second)
		c.leave(fresh) // nor without any other node
		time.Sleep(30 * time.Second)
		if n := s.ranOn("back", since); n > 0 || s.ranOn("new", since) == 0 {
			t.Errorf("%d ticks ran on nodes of a retired generation, %d on the active one", n, s.ranOn("new", since))
		}
		if now := c.job("job"); now.Generation != "two" || now.Schedule != before.Schedule || now.Revision != before.Revision {
			t.Errorf("the definition was %+v and is %+v", before, now)
		}
		_, err := c.ops().GetJob(t.Context(), "more")
		refused(t, err, ops.ErrUnknownJob)
		if err := c.ops().Delete(t.Context(), "gone", time.Time{}); err != nil {
			t.Errorf("an orphan that only nodes on standby hold: %v", err)
		}
	})
}

// A job that follows two others, over promotions and a pause of one upstream: each of its ticks has
// one outcome, and it runs for the ticks that both upstreams ran.
func TestPromoteJoins(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		both := jobs.Job{Name: "both", After: []string{"left", "right"}, TTL: 5 * time.Second, Overlap: jobs.OverlapQueue, Func: eachSecond("", s).Func}
		list := []jobs.Job{eachSecond("left", s), eachSecond("right", s), both}
		other := slices.Clone(list)
		for i := range other {
			other[i].TTL = 6 * time.Second // not the same definition
		}
		c.twoGenerations(server, scheduler.Config{}, list, other)
		for n := range 6 {
			c.promote([]string{"two", "one"}[n%2], ops.PromoteOptions{})
			time.Sleep(time.Second + time.Duration(n)*190*time.Millisecond)
			var err error
			switch n {
			case 2:
				err = c.ops().Pause(t.Context(), "left", ops.PauseOptions{Author: "ops", Reason: "x"})
			case 4:
				err = c.ops().Resume(t.Context(), "left")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5*time.Second + 500*time.Millisecond) // no tick is under way
		left, right, joined := c.job("left").Counts, c.job("right").Counts, c.job("both").Counts
		if left[jobs.OutcomePaused] < 2 || right[jobs.OutcomeSucceeded] != left[jobs.OutcomeSucceeded]+left[jobs.OutcomePaused] {
			t.Errorf("left %v, right %v", left, right)
		}
		if joined[jobs.OutcomeSucceeded] != left[jobs.OutcomeSucceeded] || joined[jobs.OutcomeSkipped] != left[jobs.OutcomePaused] || joined[jobs.OutcomeMissed] != 0 {
			t.Errorf("joined %v of left %v", joined, left)
		}
		c.end()
		s.check(t)
	})
}

// A backfill goes on at the generation that is promoted in the middle of it, and waits for a pause
// there: each tick runs once.
func TestPromoteAmidABackfill(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const n = 60
		s := &sink{}
		one := hourly("report", s, 300*time.Millisecond)
		two := one
		two.TTL = 6 * time.Second // not the same definition
		c.twoGenerations(server, scheduler.Config{}, []jobs.Job{one}, []jobs.Job{two})
		from := time.Now().UTC().Truncate(time.Hour).Add(-100 * time.Hour)
		must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: from, To: from.Add((n - 1) * time.Hour), Parallel: 2}))
		time.Sleep(3 * time.Second)
		c.promote("two", ops.PromoteOptions{})
		time.Sleep(5 * time.Second)
		if err := c.ops().Pause(t.Context(), "report", ops.PauseOptions{Author: "ops", Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		paused := len(s.all())
		time.Sleep(5 * time.Second)
		if more := len(s.all()) - paused; more > 0 || paused >= n {
			t.Errorf("%d of %d runs in the pause", more, paused)
		}
		c.promote("one", ops.PromoteOptions{})
		if err := c.ops().Resume(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		if v := c.finish("report"); v.State != "done" || v.Counts[jobs.OutcomeSucceeded] != n || v.Ended != n {
			t.Errorf("at the end: %+v", v)
		}
		ticks := s.filled("report")
		slices.SortFunc(ticks, time.Time.Compare)
		if !slices.EqualFunc(ticks, hours(from, n), time.Time.Equal) {
			t.Errorf("%d ticks ran: %v", len(ticks), ticks)
		}
		if a, b := s.ranOn("a", time.Time{}), s.ranOn("b", time.Time{}); a == 0 || b == 0 {
			t.Errorf("%d ran on generation one, %d on two", a, b)
		}
	})
}
