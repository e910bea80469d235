package scheduler_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A tick costs at most two script calls, whatever the number of nodes; what the nodes do besides
// (their beat in the roster) does not depend on ticks and is measured first and taken off.
func TestScriptCallsPerTick(t *testing.T) {
	for _, nodes := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			idle := scriptCalls(t, nodes, "0 0 1 1 *")
			busy := scriptCalls(t, nodes, "* * * * * *")
			perTick := (busy.calls - idle.calls/idle.seconds*busy.seconds) / busy.ticks
			t.Logf("%.0f ticks in %.1f s on %d nodes: %.0f script calls, of them %.1f a second in the background: %.2f a tick",
				busy.ticks, busy.seconds, nodes, busy.calls, idle.calls/idle.seconds, perTick)
			if busy.ticks < 20*4 {
				t.Errorf("only %.0f ticks ran: too few to measure", busy.ticks)
			}
			if perTick > 2 {
				t.Errorf("%.2f script calls a tick, want at most 2", perTick)
			}
		})
	}
}

type usage struct{ calls, ticks, seconds float64 }

// scriptCalls runs 20 jobs for five seconds and counts, at the server, the scripts called.
func scriptCalls(t *testing.T, nodes int, schedule string) usage {
	t.Helper()
	server := redistest.Start(t)
	c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client { return redis.NewClient(redistest.ClientOptions(server.Addr())) }}
	s := &sink{}
	var list []jobs.Job
	for i := range 20 {
		list = append(list, jobs.Job{Name: fmt.Sprintf("job-%d", i), Schedule: schedule, TTL: 5 * time.Second, Func: func(_ context.Context, r *jobs.Run) error {
			s.write(r)
			return nil
		}})
	}
	for i := range nodes {
		n := c.start(fmt.Sprintf("n%d", i), scheduler.Config{}, list...)
		for n.Ready() != nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	<-time.After(2 * time.Second) // registration and joining are over
	client := server.Client(t)
	before, beganAt, had := evalshaCalls(t, client), time.Now(), len(s.all())
	<-time.After(5 * time.Second)
	u := usage{calls: evalshaCalls(t, client) - before, ticks: float64(len(s.all()) - had), seconds: time.Since(beganAt).Seconds()}
	c.end()
	s.check(t)
	return u
}

var evalsha = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

func evalshaCalls(t *testing.T, client *redis.Client) float64 {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, m := range evalsha.FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
