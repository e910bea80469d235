package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A run lies behind ticks that were skipped, which nobody remembers. While its node has not told of it with the gap, the
// others claim nothing: they would come to its tick.
func TestFailoverOthersWaitForGaps(t *testing.T) {
	for _, slow := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			var first atomic.Pointer[string]
			job := jobs.Job{Name: "job", Schedule: "* * * * * *", TTL: 10 * time.Second, Func: func(ctx context.Context, r *jobs.Run) error {
				name := r.Node()
				first.CompareAndSwap(nil, &name)
				s.write(r)
				if *first.Load() != name {
					return nil
				}
				select {
				case <-time.After(3500 * time.Millisecond):
				case <-ctx.Done():
				}
				return context.Cause(ctx)
			}}
			var late atomic.Bool
			for _, name := range []string{"x", "y"} {
				client := server.Client()
				client.AddHook(around{script: "reassert", before: func() {
					if late.Load() && *first.Load() == name {
						time.Sleep(slow)
					}
				}})
				c.startOver(client, name, scheduler.Config{}, job)
			}
			time.Sleep(1300 * time.Millisecond)
			held := server.Snapshot()
			time.Sleep(4200 * time.Millisecond)
			late.Store(true)
			failOver(server, held)
			time.Sleep(4 * time.Second)
			late.Store(false)
			time.Sleep(6 * time.Second)
			c.end()
			s.check(t)
		})
	}
}

// Two nodes ran a job's ticks one after the other, and the one with the later ones tells first: it waits for the other.
func TestFailoverGapsAreFilled(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		slow := server.Client()
		slow.AddHook(around{script: "reassert", before: func() { time.Sleep(300 * time.Millisecond) }})
		c.startOver(slow, "a", whenDue, job)
		time.Sleep(1500 * time.Millisecond)
		held := server.Snapshot()
		time.Sleep(3 * time.Second)
		c.start("b", whenDue, job)
		if err := c.ops().DrainNode(t.Context(), "a", scheduler.DrainOptions{Author: "me", Reason: "b is to run what follows"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		failOver(server, held)
		time.Sleep(6 * time.Second)
		c.end()
		s.check(t)
		got := outcomes(c.runs("job"))
		if int(got["succeeded"]) != len(s.all()) || len(got) != 1 || s.ranOn("a", time.Time{}) == 0 || s.ranOn("b", time.Time{}) == 0 {
			t.Errorf("history %v of %d runs", got, len(s.all()))
		}
	})
}

// A restart that lost nothing: ends whose rows have left the history are not recorded anew, however short that is.
func TestFailoverTrimmedHistory(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		after, parts := eachSecond("after", s), eachSecond("parts", s)
		after.Schedule, after.After = "", "job"
		parts.Shards = 7
		c.start("a", scheduler.Config{HistoryKeep: 16}, eachSecond("job", s), after, parts)
		time.Sleep(40500 * time.Millisecond)
		server.SetRunID(newServer)
		time.Sleep(6 * time.Second)
		for _, v := range must[[]scheduler.JobView](t)(c.ops().Jobs(t.Context())) {
			if got, want := v.Counts["succeeded"], int64(len(s.ticks(v.Name))); got != want || want < 40 {
				t.Errorf("%s: %d ends are counted of %d runs", v.Name, got, want)
			}
		}
		if n := c.logs.count("Redis has lost runs") + c.logs.count("Redis had lost"); n > 0 {
			t.Errorf("%d lines say that something was lost", n)
		}
	})
}
