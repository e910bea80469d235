package redisconn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

func TestMajority(t *testing.T) {
	ctx := t.Context()
	for replicas, want := range []int{1, 1, 1, 2} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			master, _ := redistest.StartReplicas(t, replicas)
			if got, err := redisconn.Majority(ctx, master.Client(t)); err != nil || got != want {
				t.Errorf("%d replicas: %d, %v; want %d", replicas, got, err, want)
			}
		})
	}
	gone := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	t.Cleanup(func() { _ = gone.Close() })
	if _, err := redisconn.Majority(ctx, gone); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	if _, err := redisconn.Majority(ctx, ring); err == nil || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("a Ring: %v", err)
	}
}

func TestMajorityOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	o := c.Options()
	o.ReadTimeout = 500 * time.Millisecond // of a master that hangs
	client := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = client.Close() })
	if got, err := redisconn.Majority(t.Context(), client); err != nil || got != 1 {
		t.Errorf("one replica each: %d, %v; want 1", got, err)
	}
	master, err := c.Master(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if of, err := redisconn.Master(t.Context(), client, "key"); err != nil || of.Options().Addr != master.Addr() {
		t.Errorf("the master of a key: %v, %v; want %s", of, err, master.Addr())
	}
	if err := master.Pause(); err != nil {
		t.Fatal(err)
	}
	if got, err := redisconn.Majority(t.Context(), client); err != nil || got != 1 {
		t.Errorf("one master hangs: %d, %v; want what the others say", got, err)
	}
}
