package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ops"
)

// tool is the connection and the arguments of a command that reads Redis.
type tool struct {
	ctx  context.Context // ends at SIGINT and SIGTERM
	in   *ops.Client
	args []string
	full func() bool // whether Redis has no memory left; a call to Redis
}

// inspect connects a command to Redis.
func (a *app) inspect(f func(tool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if address := a.apiAddress(cmd); address != "" {
			return a.overAPI(address, cmd.Flags().Changed("redis"), args, f)
		}
		return a.reach(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
			in, err := ops.New(client, l.Namespace)
			if err != nil {
				return l.Refused(err)
			}
			ctx, stop := a.interruptible()
			defer stop()
			in = in.As(a.actor())
			err = f(tool{ctx, in, args, func() bool { return redisconn.OutOfMemory(ctx, client) }})
			a.elsewhere(ctx, in, err)
			return err
		})
	}
}

// elsewhere warns on stderr that a move has closed the namespace: the command's output may be
// outdated. A command that was refused for the move, or that did not reach Redis, has printed its
// error already.
func (a *app) elsewhere(ctx context.Context, in *ops.Client, err error) {
	if errors.Is(err, ops.ErrRefused) || errors.Is(err, locking.ErrUnreachable) && !errors.As(err, new(*ops.UnreachableError)) {
		return
	}
	if words, err := in.Closed(ctx); err == nil && words != "" {
		a.say("%s", words)
	}
}

// reach connects a command to the Redis of its configuration.
func (a *app) reach(cmd *cobra.Command, f func(l *config.Loaded, client redis.UniversalClient) error) error {
	if cmd.Flags().Changed("api") {
		return usagef("%s works on Redis itself, which the API does not pass on: use --redis", cmd.CommandPath())
	}
	l, err := a.loadTool(cmd)
	if err != nil {
		return err
	}
	client, err := l.NewClient()
	if err != nil {
		if a.apiAddress(cmd) != "" {
			err = fmt.Errorf("%s works on Redis itself, which the API does not pass on: %w", cmd.CommandPath(), err)
		}
		return err
	}
	defer client.Close()
	otherwise := "name another with --redis"
	switch {
	case l.Redis.Mode != config.ModeStandalone:
		otherwise = "name another configuration with --config"
	case cmd.Flags().Changed("redis"):
		otherwise = ""
	}
	return l.Explained(f(l, client), otherwise)
}

// sayUnheard prints, after the output about one job or node, that masters of a Cluster do not
// answer. The output is complete; only a job's owner, and how many jobs a node does not claim,
// depend on other jobs too.
func (a *app) sayUnheard(err error) error {
	if errors.As(err, new(*ops.UnreachableError)) {
		a.say("worked out without what cannot be read: %v", err)
		return nil
	}
	return err
}

// sayLacks prints, after a list, which records cannot be read, and returns the list's other errors.
func (a *app) sayLacks(err error) error {
	parts, unreadable, other := ops.Incomplete(err)
	if len(unreadable) > 0 {
		a.say("the list lacks what this version cannot read: %v", errors.Join(unreadable[:min(len(unreadable), lacksSaid)]...))
	}
	if rest := len(unreadable) - lacksSaid; rest > 0 {
		a.say("and %d more", rest)
	}
	return errors.Join(append(parts, other)...)
}

// lacksSaid is how many records that cannot be read are named.
const lacksSaid = 10

// sayFull prints, after a list without living nodes, that nodes may live and be unable to write.
func (a *app) sayFull(t tool) {
	if t.full() {
		a.say("Redis is full: nodes cannot say that they live, and nothing is claimed; %s", redisconn.FreeMemory)
	}
}
