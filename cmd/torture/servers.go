//go:build unix

package main

import (
	"errors"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// openRedis starts the server, or several of them and sentinels, or a Cluster.
func (s *stage) openRedis(data string) {
	var err error
	s.check(os.MkdirAll(data, 0o700))
	switch {
	case s.sharded:
		s.shards, err = redistest.StartClusterProcess(redistest.ClusterConfig{Dir: data, Args: s.clusterArgs})
		s.check(err)
		s.section = map[string]any{"mode": "cluster", "addrs": s.shards.Options().Addrs}
		s.client = redis.NewClusterClient(s.shards.Options())
	case s.sentinel:
		s.watch, err = redistest.StartSentinelsProcess(redistest.SentinelsConfig{Dir: data})
		s.check(err)
		s.section = map[string]any{"mode": "sentinel", "addrs": s.watch.Addrs(), "master_name": s.watch.MasterName()}
		s.client = redis.NewFailoverClient(s.watch.Options())
	default:
		s.redis, err = redistest.StartProcess(redistest.ProcessConfig{Dir: data})
		s.check(err)
		s.client = redis.NewClient(redistest.ClientOptions(s.redis.Addr()))
	}
}

// redisFlags returns a node's flags, including the server's URL.
func (s *stage) redisFlags(more []string) []string {
	if s.redis == nil {
		return more
	}
	return append([]string{"--redis", "redis://" + s.redis.Addr()}, more...)
}

func (s *stage) closeRedis() error {
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Kill())
	}
	if s.watch != nil {
		errs = append(errs, s.watch.Kill())
	}
	if s.shards != nil {
		errs = append(errs, s.shards.Kill())
	}
	return errors.Join(errs...)
}
