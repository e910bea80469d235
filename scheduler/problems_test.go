package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/sharding"
)

// problems returns the problems, a line for each: severity, code and subject.
func (c *cluster) problems() (lines []string) {
	c.t.Helper()
	for _, p := range must[[]ops.Problem](c.t)(c.ops().Problems(c.t.Context())) {
		if p.Text == "" || p.Cure == "" || p.Kind == "" {
			c.t.Errorf("without words: %+v", p)
		}
		line := p.Severity + " " + p.Code + " " + p.On
		if p.Count > 0 {
			line += fmt.Sprint("+", p.Count)
		}
		lines = append(lines, line)
	}
	return lines
}

// found compares the problems with the wanted ones, in order.
func (c *cluster) found(want ...string) {
	c.t.Helper()
	if got := c.problems(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestProblemsOfJobs: jobs that no node can run or claims are found, and nothing where all is well.
func TestProblemsOfJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.found("error namespace_unknown escapement")
		s, started, ended := &sink{}, make(chan time.Time, 10), make(chan error, 10)
		labelled := eachSecond("labelled", s)
		labelled.Labels = map[string]string{"disk": "fast"}
		yearly := eachSecond("yearly", s)
		yearly.Schedule, yearly.Labels = "0 0 1 1 *", labelled.Labels
		n := c.start("a", scheduler.Config{MaxRunning: 1, Revision: "1"}, eachSecond("job", s))
		time.Sleep(5 * time.Second)
		c.found()
		c.leave(n)
		time.Sleep(10 * time.Second)
		c.found("error no_living_node escapement")
		c.start("a", scheduler.Config{MaxRunning: 1, Revision: "2"}, eachSecond("job", s), labelled, yearly, lasting(forever, started, ended))
		<-started
		time.Sleep(2 * time.Minute)
		c.found("error job_overdue job", "error job_no_node labelled", "warning job_no_node yearly")
		if got := found(t, c, "job_no_node"); !strings.HasPrefix(got[0].Cure, "start a node with the labels disk: fast (node.labels)") {
			t.Errorf("cure %q", got[0].Cure)
		}
	})
}

// TestProblemsOfNodes has nodes with problems, and more of them than are named one by one.
func TestProblemsOfNodes(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b, i, client := c.keepBooks(minutely), c.ops(), c.redis()
		if err := i.Pause(t.Context(), "job", ops.PauseOptions{Author: "ann", Reason: "bank is down"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * 24 * time.Hour)
		c.found("error no_living_node escapement", "warning job_paused_long job")
		r := roster.New(client, roster.Config{Namespace: "escapement", TTL: time.Hour})
		beat := func(m roster.Member, id string, age time.Duration) {
			t.Helper()
			m.Node, m.Started = sharding.Node{ID: id, Name: strings.ToUpper(id)}, time.Now().Add(-age)
			must[roster.View](t)(r.Beat(t.Context(), m))
		}
		beat(roster.Member{Revision: "1", State: roster.StateStandby, Generation: "green"}, "s", 25*time.Hour)
		c.found("error nobody_claims escapement", "warning node_standby_long S", "warning job_paused_long job")
		beat(roster.Member{Revision: "1", Version: "v1", ZoneData: "2025b"}, "a", time.Hour)
		beat(roster.Member{Revision: "2", Version: "v2", ZoneData: "2026a", OffsetMS: -1001}, "b", time.Minute)
		c.found("error node_clock B", "warning node_standby_long S", "warning job_paused_long job") // it is being deployed
		beat(roster.Member{Version: "v2", ZoneData: "2026a", OffsetMS: 300, Trouble: "no luck", Refused: &roster.Refusal{At: 1, Text: "config.yaml:7"}}, "b", time.Hour)
		beat(roster.Member{Revision: "2"}, "d", time.Hour)
		for k := range 23 {
			must[string](t)("", r.Drain(t.Context(), fmt.Sprint("gone-", k+10), roster.Drained{Author: "ann"}))
		}
		got := strings.Join(c.problems(), "\n")
		for _, want := range []string{
			"error node_trouble B", "warning config_refused B", "warning node_clock B", "warning node_no_revision B", "warning drain_without_node gone-29\nwarning drain_without_node +3\n",
			"warning node_revisions ", "warning node_versions ", "warning node_zone_data ", "warning job_paused_long job",
		} {
			if !strings.Contains(got+"\n", want) {
				t.Errorf("%s is not among\n%s", want, got)
			}
		}
		for k := range 23 {
			must[bool](t)(r.Resume(t.Context(), fmt.Sprint("gone-", k+10)))
		}
		must[ledger.Promotion](t)(define.Begin(t.Context(), b.Ledger, ledger.Promotion{Generation: "green", Pattern: "j*"}))
		client.Set(t.Context(), "{escapement:0}:odd", "", 0)
		got = strings.Join(c.problems(), "\n")
		if !strings.Contains(got, "error promotion_half_done green") || !strings.Contains(got, "warning key_unknown {escapement:0}:odd") {
			t.Errorf("found %s", got)
		}
		client.Del(t.Context(), "{escapement:0}:odd")
		client.HSet(t.Context(), "{escapement}:control", "move", "1|"+"0190a1b2-0000-7000-8000-000000000000"+"|from|moved|redis://new:6379|1")
		if got = c.problems()[0]; got != "error namespace_closed escapement" {
			t.Errorf("found %s first", got)
		}
		client.HDel(t.Context(), "{escapement}:control", "move")
	})
}

// TestJobsThatWaitForAnAttempt names jobs whose due ticks wait for an attempt, and not those beside
// them of which no tick is due.
func TestJobsThatWaitForAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var list []jobs.Job
		for name, schedule := range map[string]string{"late": "* * * * * *", "hourly": "10 0 * * * *"} {
			list = append(list, jobs.Job{Name: name, Schedule: schedule, TTL: 5 * time.Second, Overlap: jobs.OverlapQueue,
				Retry: jobs.Retry{Max: 1, On: jobs.RetryOtherNode, Backoff: time.Hour / 2, MaxBackoff: time.Hour / 2},
				Func:  func(context.Context, *jobs.Run) error { return errors.New("no") }})
		}
		c.start("a", scheduler.Config{Partitions: 1}, list...)
		time.Sleep(2 * time.Minute)
		waiting := 0
		for _, job := range []string{"late", "hourly"} {
			for _, r := range c.runs(job) {
				if r.Outcome == jobs.OutcomeRunning {
					waiting++
				}
			}
		}
		if got := found(t, c, "job_stands_still"); waiting != 2 || len(got) != 1 || got[0].On != "late" || !strings.Contains(got[0].Text, "its ticks wait for run ") {
			t.Errorf("%d runs wait: %+v", waiting, got)
		}
	})
}

// TestJobsThatStandStill: the doctor names the command that frees a job which a clock that was
// ahead has left behind. The command does so.
func TestJobsThatStandStill(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, e *redistest.Embedded) {
		s := &sink{}
		first := c.start("a", scheduler.Config{Revision: "1"}, eachSecond("ahead", s), eachSecond("resumed", s))
		time.Sleep(5 * time.Second)
		nothing(t, c.ops().Pause(t.Context(), "resumed", ops.PauseOptions{Reason: "why"}))
		c.leave(first)
		e.StepClock(time.Hour)
		nothing(t, c.ops().Resume(t.Context(), "resumed")) // no living node has another definition
		second := c.start("b", scheduler.Config{Revision: "1"}, eachSecond("ahead", s))
		time.Sleep(10 * time.Second)
		c.leave(second)
		e.StepClock(-time.Hour)
		c.start("c", scheduler.Config{Revision: "1"}, eachSecond("ahead", s), eachSecond("resumed", s))
		time.Sleep(5 * time.Second)
		cures := make(map[string]string)
		for _, p := range must[[]ops.Problem](t)(c.ops().Problems(t.Context())) {
			if p.Code == "job_stands_still" {
				cures[p.On] = p.Cure
			}
		}
		now := time.Now()
		var to time.Time
		rewind, found := strings.CutPrefix(cures["ahead"], "`jobs rewind ahead --to ")
		if at, err := time.Parse(time.RFC3339, strings.TrimSuffix(rewind, "`")); err == nil {
			to = at
		}
		if !found || to.Before(now) || to.After(now.Add(5*time.Second)) || cures["resumed"] != "`jobs resume resumed`" || len(cures) != 2 {
			t.Fatalf("cures %q", cures)
		}
		must[time.Time](t)(c.ops().Rewind(t.Context(), "ahead", to))
		nothing(t, c.ops().Resume(t.Context(), "resumed"))
		time.Sleep(6 * time.Second)
		c.found()
		for _, job := range []string{"ahead", "resumed"} {
			n := 0
			for _, tick := range s.ticks(job) {
				if tick.After(now) && tick.Before(now.Add(time.Minute)) {
					n++
				}
			}
			if n < 2 {
				t.Errorf("job %s has run %d ticks since", job, n)
			}
		}
	})
}

// TestToolsGoByTheTimeOfTheNodes: a clock of Redis that nodes do not believe moves no time that a
// person gives relative to now, and makes no job look late or ended.
func TestToolsGoByTheTimeOfTheNodes(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 240 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, e *redistest.Embedded) {
				s := &sink{}
				for _, node := range []string{"a", "b"} {
					c.start(node, scheduler.Config{Partitions: 1}, eachSecond("job", s), eachSecond("paused", s))
				}
				time.Sleep(10 * time.Second)
				e.StepClock(by)
				time.Sleep(2500 * time.Millisecond) // two beats of each node; nothing is late by more than 2 s
				client := c.ops()
				near := func(what string, at time.Time) {
					t.Helper()
					if off := time.Until(at); off.Abs() > 2*time.Second {
						t.Errorf("%s is %s off", what, off)
					}
				}
				near("now", must[time.Time](t)(client.Now(t.Context())))
				near("the next tick", must[[]ops.TickView](t)(client.ListTicks(t.Context(), "job", time.Time{}, 1))[0].Tick)
				near("the overview's now", must[ops.Overview](t)(client.Overview(t.Context())).Now)
				nothing(t, client.Pause(t.Context(), "paused", ops.PauseOptions{Reason: "r", Until: must[time.Time](t)(client.Now(t.Context())).Add(4 * time.Second)}))
				if o := must[ops.Overview](t)(client.Overview(t.Context())); o.Late.Count != 0 {
					t.Errorf("late are %v", o.Late)
				}
				time.Sleep(2 * time.Second)
				e.StepClock(-by)
				end := time.Now().Add(2 * time.Second)
				time.Sleep(12 * time.Second)
				if ticks := s.ticks("paused"); len(ticks) == 0 || ticks[len(ticks)-1].Before(end.Add(5*time.Second)) {
					t.Errorf("the job that was paused until %s ran last at %s", end, ticks[len(ticks)-1])
				}
			})
		})
	}
}
