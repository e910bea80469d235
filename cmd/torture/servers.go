//go:build unix

package main

import (
	"errors"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// openRedis starts the server, or several of them and sentinels.
func (s *stage) openRedis(data string) (err error) {
	if err = os.MkdirAll(data, 0o700); err != nil {
		return err
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
	return errors.Join(errs...)
}
