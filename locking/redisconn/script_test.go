package redisconn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// bothServers runs f against a real redis-server and the embedded one.
func bothServers(t *testing.T, f func(t *testing.T, client *redis.Client)) {
	t.Run("redis-server", func(t *testing.T) { f(t, redistest.Start(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		_, c := redistest.StartEmbedded(t)
		f(t, c)
	})
}

func TestScriptRun(t *testing.T) {
	bothServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		s := redisconn.NewScript("count", `return redis.call('INCRBY', KEYS[1], ARGV[1])`)
		for i, prepare := range []func() error{
			func() error { return nil }, // not loaded yet
			func() error { return nil }, // loaded
			func() error { return client.ScriptFlush(ctx).Err() },
		} {
			if err := prepare(); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Run(ctx, client, []string{"n"}, 2).Int(); err != nil || got != 2*(i+1) {
				t.Errorf("run %d: got %d, %v; want %d: run once each time", i+1, got, err, 2*(i+1))
			}
		}
		if s.Name() != "count" || s.Source() == "" {
			t.Errorf("name %q, source %q", s.Name(), s.Source())
		}
	})
}

func TestScriptInPipeline(t *testing.T) {
	bothServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		s := redisconn.NewScript("echo", `return ARGV[1]`)
		pipe := client.Pipeline()
		cmd := s.Queue(ctx, pipe, nil, "x")
		_, _ = pipe.Exec(ctx)
		if !redisconn.UnknownScript(cmd.Err()) {
			t.Fatalf("got %v; want the reply to an unknown digest", cmd.Err())
		}
		pipe = client.Pipeline()
		cmd = s.QueueSource(ctx, pipe, nil, "x")
		again := s.Queue(ctx, pipe, nil, "y")
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		if cmd.Val() != "x" || again.Val() != "y" {
			t.Errorf("got %v, %v", cmd.Val(), again.Val())
		}
	})
	if redisconn.UnknownScript(nil) || redisconn.UnknownScript(redis.Nil) {
		t.Error("UnknownScript takes anything")
	}
}
