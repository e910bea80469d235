package redisconn_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// A client follows a Cluster whose servers do not announce their addresses: the dialled host is
// used.
func TestUnknownEndpoints(t *testing.T) {
	t.Parallel()
	var servers [2]*redis.Client
	for i := range servers {
		s, err := redistest.StartProcess(redistest.ProcessConfig{Dir: t.TempDir(), Args: []string{
			"--cluster-enabled", "yes", "--cluster-preferred-endpoint-type", "unknown-endpoint",
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Kill() })
		servers[i] = s.Client(t)
		if err := servers[i].ClusterAddSlotsRange(t.Context(), i*8192, i*8192+8191).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(servers[1].Options().Addr)
	if err := servers[0].ClusterMeet(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
			if info, err := s.ClusterInfo(t.Context()).Result(); err == nil && strings.Contains(info, "cluster_state:ok") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the Cluster is not complete after 30 s")
			}
		}
	}
	a, err := redisconn.Parse("redis+cluster://" + servers[0].Options().Addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	client := a.Client()
	defer client.Close()
	for i := range 20 { // in the slots of both
		if err := client.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range servers {
		if n, err := s.DBSize(t.Context()).Result(); err != nil || n == 0 {
			t.Errorf("%s has %d keys, %v", s.Options().Addr, n, err)
		}
	}
	if err := redisconn.Explain(client, "", client.Get(t.Context(), "nosuch").Err()); !errors.Is(err, redis.Nil) || errors.As(err, new(*redisconn.Trouble)) {
		t.Errorf("a key that is not there: %v", err)
	}
	if err := a.Explain(t.Context(), "", redis.Nil); errors.As(err, new(*redisconn.Trouble)) {
		t.Errorf("a key that is not there: %v", err)
	}
	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{servers[0].Options().Addr}, MaxRetries: -1})
	defer own.Close()
	err = redisconn.Explain(own, "", own.Get(t.Context(), "key").Err())
	if err == nil || !strings.Contains(err.Error(), "make the client with scheduler.Connect") {
		t.Errorf("a client of the program's own: %v", err)
	}
}
