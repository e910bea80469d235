//go:build unix

package redistest

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartReplicas starts a master and some replicas that follow it, without sentinels, and stops them when the test ends. It
// returns when all of them have caught up.
func StartReplicas(tb TB, some int) (master *Server, replicas []*Server) {
	tb.Helper()
	soon := []string{"--repl-diskless-sync-delay", "0"} // else the master waits five seconds for more replicas
	start := func(args ...string) *Server {
		s, err := StartProcess(ProcessConfig{Dir: tb.TempDir(), Args: append(args, soon...)})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := s.Kill(); err != nil {
				tb.Fatal(err)
			}
		})
		return s
	}
	master = start()
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	for range some {
		replicas = append(replicas, start("--replicaof", host+" "+port))
	}
	if err := follow(master, some); err != nil {
		tb.Fatal(err)
	}
	return master, replicas
}

// follow waits until so many replicas have acknowledged a write.
func follow(master *Server, replicas int) (err error) {
	client := redis.NewClient(ClientOptions(master.Addr()))
	defer func() { err = errors.Join(err, client.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		pipe := client.Pipeline()
		pipe.Set(ctx, "replicas:follow", "", time.Second)
		waited := pipe.Do(ctx, "wait", replicas, 500)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		if n, err := waited.Int(); err != nil {
			return err
		} else if n >= replicas {
			return client.Del(ctx, "replicas:follow").Err()
		}
	}
	return errors.New("the replicas have not linked up in 20 s")
}
