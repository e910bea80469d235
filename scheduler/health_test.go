package scheduler_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

const noReplicas = "NOREPLICAS Not enough good replicas to write."

// readOnly makes a server answer reads and refuse writes, as a server does that loads its data, or
// that was just promoted and has no replicas yet.
func readOnly(on *redistest.Embedded, words string) {
	on.SetHook(func(c *server.Peer, cmd string, _ ...string) bool {
		switch cmd {
		case "EVAL", "EVALSHA", "SET", "HSET", "ZADD":
			c.WriteError(words)
			return true
		}
		return false
	})
}

// A node of a read-only Redis is not ready. Ready returns the cause throughout, and the log has the
// beginning and the end once.
func TestReadOnlyServerIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		n := c.start("a", scheduler.Config{}, eachSecond("job", s))
		time.Sleep(3500 * time.Millisecond)
		readOnly(server, noReplicas)
		time.Sleep(1500 * time.Millisecond)
		ready := 0
		for range 250 {
			if n.Ready() == nil {
				ready++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if said := c.logs.count("Redis is read-only"); ready > 0 || said != 3 || c.logs.count("answers again") > 0 {
			t.Errorf("ready at %d looks of 250, said %d times that it takes no writes; want 0, and 3 in 26 s", ready, said)
		}
		server.SetHook(nil)
		time.Sleep(3 * time.Second)
		if err := n.Ready(); err != nil || c.logs.count("takes writes again") != 1 {
			t.Errorf("not ready when it takes writes again: %v", err)
		}
		before := len(s.all())
		time.Sleep(3 * time.Second)
		if len(s.all()) == before {
			t.Error("nothing runs when it takes writes again")
		}
	})
}

// A run succeeds while Redis is read-only, for longer than the run's lease. After the outage the
// success is recorded before another node can reap the run as abandoned and run it once more.
func TestEndWhileNothingIsWritten(t *testing.T) {
	for _, words := range []string{noReplicas, "OOM command not allowed when used memory > 'maxmemory'.", "NOAUTH Authentication required."} {
		bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
			started, ended := make(chan time.Time, 9), make(chan error, 9)
			job := lasting(5*time.Second, started, ended)
			job.TTL, job.OnCrash = 10*time.Second, jobs.OnCrashRerun
			c.start("a", scheduler.Config{}, job)
			c.start("b", scheduler.Config{}, job)
			<-started
			time.Sleep(3 * time.Second)
			readOnly(server, words)
			time.Sleep(20 * time.Second)
			server.SetHook(nil)
			time.Sleep(15 * time.Second)
			if got := outcomes(c.runs(job.Name)); len(started) != 0 || got["succeeded"] != 1 || len(got) != 1 {
				t.Errorf("%s: %d more runs, history %v; want the one that succeeded", words, len(started), got)
			}
		})
	}
}
