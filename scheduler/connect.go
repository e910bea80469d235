package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Connect makes a Redis client with the settings that New, NewClient and the lock drivers need. The
// URL may begin with redis, rediss (TLS), unix, redis+sentinel, rediss+sentinel, redis+cluster or
// rediss+cluster; redisconn.Parse describes each form. With TLS the query may name files and a
// name: ca_file, cert_file, key_file, server_name. Connect reads the files, and sends nothing; the
// first call connects. The caller closes the client. An error names the fault of the URL, and
// contains no password.
func Connect(url string) (redis.UniversalClient, error) {
	address, err := redisconn.Parse(url)
	if err != nil {
		return nil, badURL(err)
	}
	return address.Client(), nil
}

func badURL(err error) error { return fmt.Errorf("scheduler: the Redis URL %w", err) }

// Run is a whole program: it connects to Redis as Connect does, and runs a node with these jobs and
// the default Config until ctx ends. It returns nil after a clean end, and an error at once for a
// wrong URL or job, without a job, or when Redis cannot be reached.
//
// The namespace is "escapement": equal job names of two programs on one Redis are one job. A
// program with another namespace, or other settings, uses Connect and New.
func Run(ctx context.Context, url string, list ...jobs.Job) error {
	if len(list) == 0 {
		return errors.New("scheduler: Run needs a job; for a node that is given its jobs later, use New and Node.Add")
	}
	address, err := redisconn.Parse(url)
	if err != nil {
		return badURL(err)
	}
	client := address.Client()
	defer client.Close()
	reg := jobs.NewRegistry()
	for _, j := range list {
		err = errors.Join(err, reg.Add(j))
	}
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	node, err := New(client, reg, Config{})
	if err != nil {
		return err
	}
	err = address.Explain(context.WithoutCancel(ctx), node.cfg.Namespace, node.Run(ctx))
	if errors.Is(err, locking.ErrUnreachable) {
		return fmt.Errorf("%w, or wait for it with Config.WaitForRedis", err)
	}
	return err
}
