//go:build unix

package redistest

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Part has the replicas follow a server that does not exist: writes that the master acknowledges
// from now on reach no other server, until one of them is promoted. The sentinels undo it after
// some seconds, if the master lives that long.
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

// Part has the replicas of master come to it with a password that it does not accept: writes that
// it acknowledges from now on reach no other server. The nodes of the Cluster still see each other,
// and promote one of the replicas when the master is gone.
func (c *Cluster) Part(ctx context.Context, master *Server) error {
	_, port, err := net.SplitHostPort(master.Addr())
	errs := []error{err}
	for _, s := range c.servers {
		info, err := order(ctx, s, "info", "replication").Text()
		errs = append(errs, err)
		if strings.Contains(info, "master_port:"+port+"\r") {
			errs = append(errs, order(ctx, s, "config", "set", "masterauth", "not this one").Err())
		}
	}
	return errors.Join(append(errs, order(ctx, master, "client", "kill", "type", "replica").Err())...)
}
