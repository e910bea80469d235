//go:build unix

package redistest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestEmbeddedInABubble(t *testing.T) {
	for range 2 { // a second bubble in one process has its own traps
		bubble(t, func(t *testing.T, e *Embedded) {
			c := e.Client()
			defer c.Close()
			if err := c.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			<-time.After(59 * time.Minute)
			wantThere(t, c, "k")
			<-time.After(time.Minute + time.Millisecond)
			if n := c.Exists(t.Context(), "k").Val(); n != 0 {
				t.Error("the key outlived its time to live")
			}
			if now := c.Time(t.Context()).Val(); time.Until(now).Abs() > time.Millisecond {
				t.Errorf("TIME is %s in a bubble where it is %s", now, time.Now())
			}
		})
	}
}

func TestEmbeddedRestart(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		c := e.Client()
		defer c.Close()
		set(t, c, "k")
		first := runID(t, c)
		if first != e.RunID() {
			t.Errorf("a script sees run_id %s; want %s", first, e.RunID())
		}
		e.Stop()
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Error("a stopped server answers")
		}
		if err := e.Restart(); err != nil {
			t.Fatal(err)
		}
		wantThere(t, c, "k")
		if runID(t, c) == first {
			t.Error("the run_id is the old one after a restart")
		}
		if info := c.Info(t.Context(), "server").Val(); !strings.Contains(info, "\r\nuptime_in_seconds:0\r\n") {
			t.Errorf("a server that has just been started again: %q", info)
		}
		e.SetRunID("0123456789012345678901234567890123456789")
		if runID(t, c) != e.RunID() {
			t.Error("SetRunID changed nothing")
		}
		if got, err := c.BLPop(t.Context(), time.Second, "none").Result(); !errors.Is(err, redis.Nil) {
			t.Errorf("a blocking command after a restart: %v, %v", got, err)
		}
	})
}

// bubble gives f an embedded server in a bubble.
func bubble(t *testing.T, f func(t *testing.T, e *Embedded)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		f(t, e)
	})
}

func TestSessionCarriesOutCommands(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		s := e.Session()
		do := func(want string, args ...string) {
			t.Helper()
			if got := string(s.Do(args)); got != want {
				t.Errorf("%v: %q, want %q", args, got, want)
			}
		}
		do("+OK\r\n", "SET", "k", "v")
		do("$1\r\nv\r\n", "GET", "k")
		do("+OK\r\n", "MULTI") // a session keeps its state
		do("+QUEUED\r\n", "INCR", "n")
		do("*1\r\n:1\r\n", "EXEC")
		c := e.Client()
		defer c.Close()
		if got := c.Get(t.Context(), "k").Val(); got != "v" {
			t.Errorf("a client of the same server reads %q", got)
		}
	})
}

func TestStepClock(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		s := e.Session()
		shown := func() time.Duration {
			reply := strings.Split(string(s.Do([]string{"EVAL", "return redis.call('TIME')[1]", "0"})), "\r\n")
			sec, err := strconv.ParseInt(reply[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return time.Until(time.Unix(sec, 0))
		}
		for _, step := range []struct{ by, want time.Duration }{{0, 0}, {time.Hour, time.Hour}, {-90 * time.Minute, -30 * time.Minute}, {30 * time.Minute, 0}} {
			e.StepClock(step.by)
			if got := shown(); got != step.want {
				t.Errorf("after a step of %s scripts see a clock that is off by %s, want %s", step.by, got, step.want)
			}
		}
	})
}

// A snapshot stands still: later writes are not in it, and are gone after a restore.
func TestSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		s := e.Session()
		do := func(line string) string { return string(s.Do(strings.Fields(line))) }
		looks := []string{"GET text", "HGETALL hash", "LRANGE list 0 -1", "ZRANGE zset 0 -1 WITHSCORES", "PTTL brief", "KEYS *"}
		look := func() (all []string) {
			for _, l := range looks {
				all = append(all, do(l))
			}
			return all
		}
		for _, line := range []string{"SET text a", "HSET hash a 1 b 2", "RPUSH list a b c", "ZADD zset 1 a 2.5 b", "SET brief x PX 5000"} {
			do(line)
		}
		want := look()
		taken := e.Snapshot()
		for _, line := range []string{"SET text b", "HSET hash a 9 c 3", "RPUSH list d", "LSET list 0 z", "ZADD zset 7 a 8 c", "ZREM zset b", "DEL brief", "SET new x"} {
			do(line)
		}
		if changed := look(); strings.Join(changed, "") == strings.Join(want, "") {
			t.Fatal("nothing was changed: this proves nothing")
		}
		e.Restore(taken)
		for i, got := range look() {
			if got != want[i] {
				t.Errorf("%s after a restore: %q, want %q", looks[i], got, want[i])
			}
		}
		e.Restore(taken) // again: it is not used up
		if got := look(); strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("restored twice: %q", got)
		}
	})
}

// The server answers at length while one client's network is slow, and another client calls the
// server meanwhile: neither client waits for ever.
func TestLongAnswersOverASlowNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, e *Embedded) {
		var network Net
		slow, quick := network.Client(e.Options()), e.Client()
		defer slow.Close()
		defer quick.Close()
		if err := slow.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		network.Delay(100 * time.Millisecond)
		done := make(chan error, 1)
		go func() {
			done <- slow.Eval(t.Context(), "local t = {} for i = 1, 2000 do t[i] = 'an answer of some length' end return t", nil).Err()
		}()
		for range 30 {
			if err := quick.Eval(t.Context(), "return 1", nil).Err(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
