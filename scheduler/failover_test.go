package scheduler_test

import (
	"cmp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// newServer is the run id of the server that takes another one's place.
var newServer = strings.Repeat("b", 40)

// failOver makes the embedded Redis another server, with the data of an earlier moment.
func failOver(server *redistest.Embedded, held redistest.Snapshot) {
	server.Restore(held)
	server.SetRunID(newServer)
}

// ranOnce wants a lasting job to have one run, which succeeded, and its context not to have ended
// before.
func (c *cluster) ranOnce(what string, started <-chan time.Time, ended <-chan error) {
	c.t.Helper()
	if cause := <-ended; cause != nil {
		c.t.Errorf("%s: the run's context ended: %v", what, cause)
	}
	time.Sleep(4 * time.Second)
	if got := outcomes(c.runs("lasting")); len(started) != 0 || got["succeeded"] != 1 || len(got) != 1 {
		c.t.Errorf("%s: %d more runs, history %v; want the one that went on", what, len(started), got)
	}
}

// An unreachable node keeps the other nodes from claiming for FailoverHold, and no longer.
// Meanwhile they are not ready, and Ready names the cause.
func TestFailoverHoldIsBounded(t *testing.T) {
	for _, hold := range []time.Duration{0, time.Second} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			job := eachSecond("job", s)
			var network redistest.Net
			cfg := scheduler.Config{FailoverHold: hold, DrainTimeout: time.Second}
			c.startOver(network.Client(server.Options()), "silent", cfg, job)
			n := c.start("b", cfg, job)
			time.Sleep(4500 * time.Millisecond) // between two ticks: what it runs would hold the job
			network.Cut()
			server.SetRunID(newServer)
			changed := time.Now()
			time.Sleep(1200 * time.Millisecond)
			if hold == 0 {
				notReady(t, n.Node, "failed over")
			}
			time.Sleep(8 * time.Second)
			if err := n.Ready(); err != nil {
				t.Errorf("ready: %v", err)
			}
			var first time.Time
			for _, r := range s.all() {
				if r.at.After(changed) && first.IsZero() {
					first = r.at
				}
			}
			want := cmp.Or(hold, 3*time.Second)
			if waited := first.Sub(changed); waited < want-100*time.Millisecond || waited > want+2*time.Second {
				t.Errorf("hold %s: the first run came %s after the failover; want about %s", hold, waited, want)
			}
			network.Heal()
			time.Sleep(4 * time.Second)
			c.end()
			s.check(t)
		})
	}
}

// A new server is read-only at first, for longer than FailoverHold. No node can report its runs
// meanwhile, so the hold begins with the first write.
func TestFailoverToAReadOnlyServer(t *testing.T) {
	for _, lasts := range []time.Duration{6 * time.Second, 6250 * time.Millisecond, 6500 * time.Millisecond, 6750 * time.Millisecond} { // who comes first differs
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			started, ended := make(chan time.Time, 3), make(chan error, 3)
			job := lasting(15*time.Second, started, ended)
			job.TTL = 30 * time.Second
			var network redistest.Net
			c.startOver(network.Client(server.Options()), "b", scheduler.Config{}, job)
			time.Sleep(time.Second)
			held := server.Snapshot()
			<-started
			c.start("a", scheduler.Config{}, job)
			time.Sleep(2 * time.Second)
			network.Delay(200 * time.Millisecond) // the reports arrive after a claim that is made at once
			readOnly(server, noReplicas)
			failOver(server, held)
			time.Sleep(lasts)
			server.SetHook(nil)
			c.ranOnce(lasts.String(), started, ended)
		})
	}
}

// The old server's answer, to a claim or to the end of a run, arrives after the running runs were
// reported to the new server, which has lost the record. The grant is handed back, and the end is
// reported too: each tick runs once and is recorded.
func TestFailoverOldGrantIsHandedBack(t *testing.T) {
	for _, script := range []string{"claim", "settle"} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			job := eachSecond("job", s)
			job.Schedule = "*/20 * * * * *"
			var held redistest.Snapshot
			var armed atomic.Bool
			client := server.Client()
			client.AddHook(around{script: script, after: func() {
				if armed.Swap(false) {
					failOver(server, held)
					time.Sleep(1700 * time.Millisecond) // the node looks at the server once a second
				}
			}})
			c.startOver(client, "x", scheduler.Config{}, job)
			time.Sleep(39 * time.Second) // the server has cached the script by now
			held = server.Snapshot()
			armed.Store(true)
			time.Sleep(30 * time.Second)
			got := outcomes(c.runs("job"))
			if armed.Load() || int(got["succeeded"]) != len(s.all()) || len(s.all()) != 3 || len(got) != 1 {
				t.Errorf("%s: history %v of %d runs", script, got, len(s.all()))
			}
			s.check(t)
		})
	}
}

// TestServerComesBack: an address leads to another server, and back to the first before all nodes
// have noticed. Each node reports to the first server the runs that may be missing there, and no
// node waits for a node that is gone.
func TestServerComesBack(t *testing.T) {
	for away := 50 * time.Millisecond; away <= 2*time.Second; away += 150 * time.Millisecond {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			s := &sink{}
			list := many(6, s)
			for _, name := range []string{"a", "b"} {
				c.start(name, scheduler.Config{}, list...)
			}
			time.Sleep(3300 * time.Millisecond)
			first := server.RunID()
			server.SetRunID(newServer)
			time.Sleep(away)
			server.SetRunID(first)
			back := time.Now()
			time.Sleep(15 * time.Second)
			c.end()
			s.each(t, list, back.Add(6*time.Second), back.Add(14*time.Second))
		})
	}
}

// A restart that lost nothing: ends whose rows have left the history are not recorded anew, however
// short that is.
func TestFailoverTrimmedHistory(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		after, parts := eachSecond("after", s), eachSecond("parts", s)
		after.Schedule, after.After = "", []string{"job"}
		parts.Shards = 7
		c.start("a", scheduler.Config{HistoryKeep: 16}, eachSecond("job", s), after, parts)
		time.Sleep(40500 * time.Millisecond)
		server.SetRunID(newServer)
		time.Sleep(6 * time.Second)
		for _, v := range must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items {
			if got, want := v.Counts[jobs.OutcomeSucceeded], int64(len(s.ticks(v.Name))); got != want || want < 40 {
				t.Errorf("%s: %d ends are counted of %d runs", v.Name, got, want)
			}
		}
		if n := c.logs.count("Redis has lost runs") + c.logs.count("Redis had lost"); n > 0 {
			t.Errorf("%d lines say that something was lost", n)
		}
	})
}
