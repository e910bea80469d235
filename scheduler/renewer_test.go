package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// warm is a job whose tick makes the server know the scripts, so that the reply a test loses is the claim's own and not the one that
// asks for the script's text.
var warm = jobs.Job{Name: "warm", Schedule: "5 * * * * *", Func: func(context.Context, *jobs.Run) error { return nil }}

// leases are the ends of all leases that a server keeps, by run.
func leases(server *redistest.Embedded) map[string]time.Time {
	all := make(map[string]time.Time)
	for p := range partitions {
		held, _ := server.Mini().SortedSet(fmt.Sprintf("{escapement:%d}:leases", p)) // most partitions have none
		for run, until := range held {
			all[run] = time.UnixMilli(int64(until))
		}
	}
	return all
}

// The claim's reply is lost and found by asking again; then the node is cut off. The deadline counts from the first request, for that is
// when Redis granted the lease.
func TestDeadlineCountsFromTheFirstRequest(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		started, ended := make(chan time.Time, 1), make(chan error, 1)
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{DrainTimeout: time.Second}, warm, lasting(forever, started, ended))
		time.Sleep(59 * time.Second)
		network.LoseReplies(1, "|schedule\r\n")
		at := <-started
		granted := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)
		if at.Sub(granted) < 500*time.Millisecond {
			t.Fatalf("started %s after the tick: the reply was not lost", at.Sub(granted))
		}
		network.Cut()
		if cause := <-ended; !errors.Is(cause, locking.ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
		if told := time.Since(granted); told > 5*time.Second {
			t.Errorf("told %s after the grant; ttl 6s less the margin of 1.06s", told)
		}
		network.Heal()
		time.Sleep(3 * time.Second)
	})
}

// A lapsed lease is not reaped before Redis' clock has been seen to run steadily for its ttl: here
// Redis becomes another run of the server just before the lease lapses.
func TestReapWaitsForASteadyClock(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		started, ended := make(chan time.Time, 2), make(chan error, 2)
		job := lasting(forever, started, ended)
		job.TTL = 20 * time.Second
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{DrainTimeout: time.Second}, job)
		<-started
		c.start("b", scheduler.Config{DrainTimeout: time.Second}, job)
		time.Sleep(time.Second)
		network.Cut()
		if cause := <-ended; !errors.Is(cause, locking.ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
		server.SetRunID(strings.Repeat("b", 40))
		changed := time.Now()
		for c.logs.count("run abandoned") == 0 {
			time.Sleep(50 * time.Millisecond)
			if time.Since(changed) > 2*time.Minute {
				t.Fatal("never reaped")
			}
		}
		if waited := time.Since(changed); waited < 19*time.Second {
			t.Errorf("reaped %s after Redis was restarted, want the ttl of 20s", waited)
		}
		network.Heal()
		time.Sleep(3 * time.Second)
	})
}

// The claim's reply is lost and the node told to stop: the run it was granted meanwhile goes back
// to pending and runs elsewhere, once.
func TestGrantDuringDrainIsHandedBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		job.Schedule = "@every 1m"
		var network redistest.Net
		var drawn []string
		newID := func() string {
			drawn = append(drawn, fmt.Sprint("id-", len(drawn)))
			return drawn[len(drawn)-1]
		}
		a := c.startOver(network.Client(server.Options()), "a", withIDs(newID), warm, job)
		time.Sleep(58 * time.Second)
		network.LoseReplies(1, "|schedule\r\n")
		time.Sleep(2*time.Second + 100*time.Millisecond)
		if network.Losing() != 0 {
			t.Fatal("no reply was lost: the fault did not happen")
		}
		c.start("b", scheduler.Config{}, warm, job)
		time.Sleep(200 * time.Millisecond)
		c.leave(a)
		time.Sleep(3 * time.Second)
		if n := c.logs.count("run handed back"); n != 1 {
			t.Errorf("handed back %d times, want once", n)
		}
		if all := s.all(); len(all) != 1 || all[0].node != "b" || all[0].at.Sub(all[0].tick) > 4*time.Second {
			t.Errorf("runs %v, want one, on b, soon", all)
		}
		// The fresh id is made of the old one, and not drawn: a drew for itself, for warm and for job.
		if id, want := c.runs("job")[0].Run, uuid.NewSHA1(uuid.NameSpaceOID, []byte("id-2")).String(); id != want || len(drawn) != 3 {
			t.Errorf("handed back as %s, want %s; %d ids drawn, want 3", id, want, len(drawn))
		}
	})
}

// The holder is cut off: its context ends, with the cause, before anybody else may reap (P4). Its report comes too late and is kept
// beside the outcome.
func TestLeaseLostIsLoggedBeforeItIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		started, ended := make(chan time.Time, 1), make(chan error, 1)
		long := lasting(forever, started, ended)
		long.Schedule = "@yearly"
		c.startOver(network.Client(server.Options()), "holder", scheduler.Config{DrainTimeout: time.Second}, long)
		time.Sleep(2 * time.Second)
		i, ctx := c.ops(), t.Context()
		id := must[string](t)(i.Trigger(ctx, long.Name, scheduler.TriggerOptions{}))
		<-started
		c.start("other", scheduler.Config{}, long)
		time.Sleep(10 * time.Second)
		network.Cut()
		cut := time.Now()
		if cause := <-ended; !errors.Is(cause, locking.ErrLeaseLost) {
			t.Errorf("the run's context ended with cause %v", cause)
		}
		told, held := time.Now(), leases(server)
		if left := held[id].Sub(told); len(held) != 1 || left < time.Second {
			t.Errorf("the holder was told %s before its lease, of %v, lapsed; want max_skew, 1s, at least", left, held)
		}
		if took := told.Sub(cut); took > 6*time.Second {
			t.Errorf("the holder was told %s after the cut, its ttl is 6s", took)
		}
		if run := must[scheduler.RunView](t)(i.Wait(ctx, id)); run.Outcome != "abandoned" || !time.Now().After(told) {
			t.Errorf("P4: reaped before the holder was told: %+v", run)
		}
		network.Heal()
		time.Sleep(5 * time.Second)
		if c.logs.count("run ended too late") != 1 {
			t.Error("the holder's settle was not answered lost")
		}
		if run := must[scheduler.RunView](t)(i.Run(ctx, id)); run.Outcome != "abandoned" || run.Error == "" {
			t.Errorf("the late report is not kept beside the outcome: %+v", run)
		}
	})
}
