//go:build unix

package redislock_test

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// answers keeps what the scripts of a client were answered.
type answers struct{ got []any }

func (*answers) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if script, is := cmd.(*redis.Cmd); is {
			a.got = append(a.got, script.Val())
		}
		return err
	}
}

var (
	allCalls  = regexp.MustCompile(`cmdstat_[^:]+:calls=(\d+)`)
	justCalls = regexp.MustCompile(`cmdstat_[^:]+`)
)

// Acquire and release of a free lock are two calls, in which Redis carries out eleven commands, and neither answer is a list,
// which Redis would send in two pieces: that is most of what such a lock costs (decision 0020).
func TestFreeLockCosts(t *testing.T) {
	c := redis.NewClient(redistest.ClientOptions(redistest.Start(t).Addr()))
	defer c.Close()
	d := redislock.NewDriver(c, redislock.Config{})
	once := func(owner string) {
		t.Helper()
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: owner, TTL: 15 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context(), "a", owner); err != nil {
			t.Fatal(err)
		}
	}
	once("first") // makes the state, and has the server learn the scripts
	if err := c.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var replies answers
	c.AddHook(&replies)
	once("second")
	if len(replies.got) != 2 {
		t.Errorf("%d calls; want 2", len(replies.got))
	}
	for i, reply := range replies.got {
		if _, list := reply.([]any); list {
			t.Errorf("answer %d is the list %v", i+1, reply)
		}
	}
	info, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	carriedOut := 0
	for _, m := range allCalls.FindAllStringSubmatch(info, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		carriedOut += n
	}
	const scripts, reset, most = 2, 1, 11
	if carriedOut -= scripts + reset; carriedOut == 0 || carriedOut > most {
		t.Errorf("%d commands inside of the scripts; want at most %d: %s", carriedOut, most, justCalls.FindAllString(info, -1))
	}
}
