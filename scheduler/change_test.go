package scheduler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// Jobs come to a running node and go again, while another node has some of them: each tick runs
// once, wherever the job is held, and no tick is lost.
func TestJobsComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		list := many(12, s)
		a := c.start("a", scheduler.Config{}, list[:4]...)
		b := c.start("b", scheduler.Config{}, list...)
		time.Sleep(10*time.Second + 300*time.Millisecond)
		if err := a.Add(list[4:]...); err != nil {
			t.Fatal(err)
		}
		added := time.Now()
		time.Sleep(10 * time.Second)
		if n := s.ranOn("a", added.Add(3*time.Second)); n < 20 {
			t.Errorf("a ran %d ticks in 7 s after it got as many jobs as b", n)
		}
		gone := []string{"job-00", "job-05", "job-11"}
		if err := b.Remove(gone...); err != nil {
			t.Fatal(err)
		}
		removed := time.Now()
		time.Sleep(10 * time.Second)
		for _, r := range s.all() {
			if slices.Contains(gone, r.job) && r.node == "b" && r.tick.After(removed.Add(time.Second)) {
				t.Errorf("b ran %s at %s, %s after it was removed there", r.job, r.tick.Format(time.TimeOnly), r.tick.Sub(removed))
			}
		}
		if late := s.each(t, list, added.Add(-8*time.Second), time.Now().Add(-3*time.Second)); late > 2*time.Second {
			t.Errorf("a tick was %s late", late)
		}
		for _, n := range []*running{a, b} {
			if v := c.node(n.Name()); v.Jobs != map[string]int{"a": 12, "b": 9}[n.Name()] {
				t.Errorf("%s shows %d jobs", n.Name(), v.Jobs)
			}
		}
		c.end()
		s.check(t)
	})
}

// A job that its last node has removed stays in Redis, and its ticks wait; it may come back as
// another one. A run that goes on while its job is removed ends as it would have.
func TestTheLastNodeRemovesAJob(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, started, ended := &sink{}, make(chan time.Time, 9), make(chan error, 9)
		job := eachSecond("job", s)
		a := c.start("a", scheduler.Config{}, job, lasting(90*time.Second, started, ended))
		<-started
		time.Sleep(500 * time.Millisecond)
		for round := range 20 { // at different phases of claims in flight
			if err := a.Remove("job"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(3000+round*37) * time.Millisecond)
			ran := len(s.ticks("job"))
			if v := c.job("job"); !v.Orphan || v.Owner != "" {
				t.Errorf("round %d: %+v", round, v)
			}
			job.TTL += time.Second
			if err := a.Add(job); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if v := c.job("job"); v.Orphan || v.TTL != job.TTL || len(s.ticks("job")) < ran+3 {
				t.Errorf("round %d: %d runs more, %+v", round, len(s.ticks("job"))-ran, v)
			}
		}
		if err := a.Remove("lasting"); err != nil {
			t.Fatal(err)
		}
		if cause := <-ended; cause != nil {
			t.Errorf("the run that went on was ended: %v", cause)
		}
		time.Sleep(2 * time.Second)
		if got := outcomes(c.runs("lasting")); got["succeeded"] != 1 {
			t.Errorf("history of the job with a run that went on: %v", got)
		}
		c.end()
		s.check(t)
	})
}

// A fault of one job refuses the whole change, before the node runs and while it runs.
func TestChangesAreRefusedWhole(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		good, after := eachSecond("good", s), jobs.Job{Name: "after", After: []string{"first"}, Func: func(context.Context, *jobs.Run) error { return nil }}
		reg := jobs.NewRegistry()
		reg.MustAdd(eachSecond("first", s))
		idle := must[*scheduler.Node](t)(scheduler.New(c.redis(), reg, scheduler.Config{Name: "idle"}))
		if err := idle.Add(good); err != nil {
			t.Error(err)
		}
		n := c.start("a", scheduler.Config{}, eachSecond("first", s), after)
		time.Sleep(2 * time.Second)
		short := good
		short.TTL = time.Second
		for want, change := range map[string]error{
			`job "first": jobs: name already registered`: n.Add(good, eachSecond("first", s)),
			`job "good": jobs: name already registered`:  idle.Add(good),
			"ttl: 1s is outside":                         n.Add(eachSecond("fine", s), short),
			`no job "strange"`:                           n.Remove("first", "strange"),
			`after: there is no job`:                     n.Remove("first"),
			`no job "after" to remove`:                   n.Remove("after", "after"),
		} {
			if change == nil || !strings.Contains(change.Error(), want) {
				t.Errorf("%v; want %s", change, want)
			}
		}
		time.Sleep(3 * time.Second)
		names := make(map[string]bool)
		for _, v := range must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items {
			names[v.Name] = true
		}
		if got := slices.Sorted(maps.Keys(names)); fmt.Sprint(got) != "[after first]" {
			t.Errorf("there are %v", got)
		}
		if err := n.Remove("after", "first"); err != nil {
			t.Error(err)
		}
		c.leave(n)
		if err := n.Add(good); err == nil || !strings.Contains(err.Error(), "stopping") {
			t.Errorf("a node that has ended takes jobs: %v", err)
		}
	})
}

// Three nodes get another set of jobs one after another, and later the first one again, as when a
// file of jobs changes on each. Each tick runs once, in the definition of one of the sets. A node
// that does not have the new set yet takes nothing back, not even when it starts again. The first
// set counts again with the first node that returns to it, when it has a greater revision by then,
// else with the last.
func TestRollingChange(t *testing.T) {
	for _, x := range []struct {
		name      string
		revisions [2]string
		back      [3]time.Duration // of ttl, after each node has changed back
	}{
		{"equal", [2]string{}, [3]time.Duration{6 * time.Second, 6 * time.Second, 5 * time.Second}},
		{"greater", [2]string{"3", "2"}, [3]time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}},
	} {
		t.Run(x.name, func(t *testing.T) { rollingChange(t, x.revisions, x.back) })
	}
}

// rollingChange changes three nodes to a second set of jobs and back to the first, with the
// revision of each set.
func rollingChange(t *testing.T, revisions [2]string, back [3]time.Duration) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, old, fresh := &sink{}, &sink{}, &sink{}
		started, ended := make(chan time.Time, 9), make(chan error, 9)
		sets := func(n int) (list []jobs.Job) {
			same, ttl, work := eachSecond("same", s), eachSecond("ttl", s), eachSecond("work", []*sink{old, fresh}[n])
			ttl.TTL += time.Duration(n) * time.Second
			rhythm := eachSecond("rhythm", s)
			rhythm.Schedule = []string{"* * * * * *", "*/2 * * * * *"}[n]
			return append(list, same, ttl, work, rhythm, eachSecond([]string{"gone", "new"}[n], s))
		}
		// turn replaces what differs between two sets.
		turn := func(r *running, to int) {
			if err := r.Change(scheduler.Change{Add: sets(to)[1:], Remove: []string{"ttl", "work", "rhythm", []string{"new", "gone"}[to]}, Revision: revisions[to]}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(ttl time.Duration, when string) {
			t.Helper()
			if v := c.job("ttl"); v.TTL != ttl {
				t.Errorf("%s the ttl is %s, want %s", when, v.TTL, ttl)
			}
		}
		var nodes [3]*running
		for i := range nodes {
			nodes[i] = c.start(string(rune('a'+i)), scheduler.Config{Revision: "1"}, sets(0)...)
		}
		if err := nodes[0].Add(lasting(30*time.Second, started, ended)); err != nil {
			t.Fatal(err)
		}
		<-started
		began := time.Now()
		if err := nodes[0].Change(scheduler.Change{Add: []jobs.Job{lasting(time.Second, started, ended)}, Remove: []string{"lasting"}}); err != nil {
			t.Fatal(err)
		}
		for i := range nodes {
			turn(nodes[i], 1)
			time.Sleep(3*time.Second + time.Duration(i*370)*time.Millisecond)
			want(6*time.Second, "after "+nodes[i].Name()+" has changed")
			if i == 1 {
				c.leave(nodes[2])
				nodes[2] = c.start("c", scheduler.Config{Revision: "1"}, sets(0)...)
				time.Sleep(4 * time.Second)
				want(6*time.Second, "after a node with the first set was started again")
			}
		}
		middle := time.Now()
		for i := range nodes {
			turn(nodes[i], 0)
			time.Sleep(4*time.Second + time.Duration(i*370)*time.Millisecond)
			want(back[i], "after "+nodes[i].Name()+" has changed back")
		}
		end := time.Now()
		time.Sleep(3 * time.Second)
		if cause := <-ended; cause != nil {
			t.Errorf("a run of a replaced job was ended: %v", cause)
		}
		if late := s.each(t, sets(0)[:1], began, end); late > time.Second {
			t.Errorf("a tick of a job that did not change was %s late", late)
		}
		if late := s.each(t, sets(0)[1:2], began, end); late > 3*time.Second {
			t.Errorf("a tick of a job that changed was %s late", late)
		}
		both := &sink{runs: append(old.all(), fresh.all()...)}
		slices.SortFunc(both.runs, func(a, b sunk) int { return a.at.Compare(b.at) })
		if late := both.each(t, sets(0)[2:3], began, end); late > 3*time.Second {
			t.Errorf("a tick of a job whose function changed was %s late", late)
		}
		for _, r := range old.all() {
			if r.at.After(middle.Add(-time.Second)) && r.at.Before(middle) {
				t.Errorf("the old function ran at %s on %s", r.at.Format(time.TimeOnly), r.node)
			}
		}
		for _, v := range must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items {
			if len(v.Superseded) > 0 || v.Orphan != (v.Name == "new") && v.Name != "lasting" {
				t.Errorf("at the end: %+v", v)
			}
		}
		c.end()
		s.check(t)
		both.check(t)
	})
}
