//go:build unix

package main

import (
	"errors"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// openRedis starts the server, or several of them and sentinels.
func (s *stage) openRedis(data string) (err error) {
	if err = os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if s.sharded {
		return s.openShards(data)
	}
	if !s.sentinel {
		if s.redis, err = redistest.StartProcess(redistest.ProcessConfig{Dir: data}); err != nil {
			return err
		}
		s.client = redis.NewClient(redistest.ClientOptions(s.redis.Addr()))
		return nil
	}
	if s.watch, err = redistest.StartSentinelsProcess(redistest.SentinelsConfig{Dir: data}); err != nil {
		return err
	}
	s.section = map[string]any{"mode": "sentinel", "addrs": s.watch.Addrs(), "master_name": s.watch.MasterName()}
	s.client = redis.NewFailoverClient(s.watch.Options())
	return nil
}

// openShards starts a Cluster in a server's place.
func (s *stage) openShards(data string) (err error) {
	if s.shards, err = redistest.StartClusterProcess(redistest.ClusterConfig{Dir: data}); err != nil {
		return err
	}
	s.section = map[string]any{"mode": "cluster", "addrs": s.shards.Options().Addrs}
	s.client = redis.NewClusterClient(s.shards.Options())
	return nil
}

// redisFlags are a node's flags, with the one that names the server.
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

// openNext starts the Redis Cluster that the namespace is going to move to.
func (s *stage) openNext(data string) (err error) {
	if !s.next {
		return nil
	}
	if err = os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if s.cluster, err = redistest.StartClusterProcess(redistest.ClusterConfig{Dir: data}); err != nil {
		return err
	}
	s.there = redis.NewClusterClient(s.cluster.Options())
	s.section = map[string]any{"next": s.nextURL()}
	return nil
}

func (s *stage) nextURL() string {
	var addrs []string
	for _, server := range s.cluster.Servers()[:3] {
		addrs = append(addrs, server.Addr())
	}
	return "redis+cluster://" + strings.Join(addrs, ",") + "/"
}

func (s *stage) closeNext() error {
	var err error
	if s.there != nil {
		err = s.there.Close()
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Kill())
	}
	return err
}
