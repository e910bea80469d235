package scheduler_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A tick costs at most two script calls, whatever the number of nodes. The server's commandstats
// count all calls; those of the roster, one a second from each node whatever the ticks, are
// counted at the clients and taken off. A tick that is late by more than the grace is anyone's, and
// may be asked for twice: on a machine so busy that this happens, the measurement is made again.
func TestScriptCallsPerTick(t *testing.T) {
	for _, nodes := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			u := scriptCalls(t, nodes)
			for try := 1; u.late > 0 && try < 4; try++ {
				t.Logf("%d of %d ticks were late: measured again", u.late, u.ticks)
				u = scriptCalls(t, nodes)
			}
			perTick := float64(u.calls-u.beats) / float64(u.ticks)
			t.Logf("%d ticks in 5 s on %d nodes: %d script calls, of them %d of the roster: %.2f a tick", u.ticks, nodes, u.calls, u.beats, perTick)
			if u.ticks < 20*4 || u.beats < int64(4*nodes) {
				t.Errorf("%d ticks and %d beats: too few to measure", u.ticks, u.beats)
			}
			if perTick > 2 {
				t.Errorf("%.2f script calls a tick, want at most 2", perTick)
			}
		})
	}
}

type usage struct{ calls, ticks, beats, late int64 }

// beatCounter counts a client's calls of the roster's scripts.
type beatCounter struct{ calls atomic.Int64 }

func (b *beatCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *beatCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && len(args) > 3 && strings.HasSuffix(fmt.Sprint(args[3]), ":roster") {
			b.calls.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (b *beatCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// scriptCalls runs 20 jobs each second and counts for five seconds, from the middle of one to the
// middle of another, so that no tick is cut in two.
func scriptCalls(t *testing.T, nodes int) usage {
	t.Helper()
	server := redistest.Start(t)
	var beats beatCounter
	c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
		client := redis.NewClient(redistest.ClientOptions(server.Addr()))
		client.AddHook(&beats)
		return client
	}}
	s := &sink{}
	var list []jobs.Job
	for i := range 20 {
		list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
	}
	for i := range nodes {
		c.start(fmt.Sprintf("n%d", i), scheduler.Config{}, list...)
	}
	for _, n := range c.nodes {
		for n.Ready() != nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	client := server.Client(t)
	<-time.After(3*time.Second + untilHalf(t, client)) // joining is over
	began := usage{calls: evalshaCalls(t, client), ticks: int64(len(s.all())), beats: beats.calls.Load()}
	<-time.After(4*time.Second + untilHalf(t, client))
	u := usage{calls: evalshaCalls(t, client) - began.calls, ticks: int64(len(s.all())) - began.ticks, beats: beats.calls.Load() - began.beats}
	for _, r := range s.all()[began.ticks:] {
		if r.at.Sub(r.tick) > 400*time.Millisecond {
			u.late++
		}
	}
	c.end()
	s.check(t)
	return u
}

// untilHalf is the time until the server's clock is next in the middle of a second.
func untilHalf(t *testing.T, client *redis.Client) time.Duration {
	t.Helper()
	now, err := client.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.Truncate(time.Second).Add(1500 * time.Millisecond).Sub(now)
}

var evalsha = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

func evalshaCalls(t *testing.T, client *redis.Client) int64 {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, m := range evalsha.FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
