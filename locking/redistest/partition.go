//go:build unix

package redistest

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Part has the replicas follow a server that is not there: what the master acknowledges from now on, no other server
// has, until one of them is promoted. The sentinels undo it after some seconds, if the master lives that long.
func (s *Sentinels) Part(ctx context.Context) error {
	master, err := s.Master()
	if err != nil {
		return err
	}
	var errs []error
	for _, server := range s.servers {
		if server == master {
			continue
		}
		c := redis.NewClient(ClientOptions(server.Addr()))
		errs = append(errs, c.ReplicaOf(ctx, "127.0.0.1", "1").Err(), c.Close())
	}
	return errors.Join(errs...)
}
