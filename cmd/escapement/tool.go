package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler"
)

// tool is what a command that looks into Redis works with.
type tool struct {
	ctx  context.Context // ends at SIGINT and SIGTERM
	in   *scheduler.Client
	args []string
	full func() bool // asks whether Redis has no memory left
}

// inspect connects a command to Redis.
func (a *app) inspect(f func(tool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.reach(cmd, func(l *loaded, client redis.UniversalClient) error {
			in, err := scheduler.NewClient(client, l.Namespace)
			if err != nil {
				return l.refused(err)
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = f(tool{ctx, in, args, func() bool { return redisconn.OutOfMemory(ctx, client) }})
			a.elsewhere(ctx, in, err)
			return err
		})
	}
}

// elsewhere says on stderr that a move has closed the namespace, so that nobody takes what a command shows for the present.
// A command that was refused for it, or that did not reach Redis, has said what there is to say.
func (a *app) elsewhere(ctx context.Context, in *scheduler.Client, err error) {
	if errors.Is(err, scheduler.ErrRefused) || errors.Is(err, locking.ErrUnreachable) && !errors.As(err, new(*scheduler.UnreachableError)) {
		return
	}
	if words, err := in.Closed(ctx); err == nil && words != "" {
		a.say("%s", words)
	}
}

// reach connects a command to the Redis of its configuration.
func (a *app) reach(cmd *cobra.Command, f func(l *loaded, client redis.UniversalClient) error) error {
	l, err := a.load(cmd, false)
	if err != nil {
		return err
	}
	client, err := l.newClient()
	if err != nil {
		return err
	}
	defer client.Close()
	otherwise := "name another with --redis"
	if l.Redis.Mode != modeStandalone {
		otherwise = "name another configuration with --config"
	}
	return l.unreachable(f(l, client), otherwise)
}

// sayUnheard says beside what was asked for of one job or node that masters of a Cluster do not answer. It is all there; only who goes
// first for a job, and how many jobs a node does not claim, depends on other jobs too.
func (a *app) sayUnheard(err error) error {
	if errors.As(err, new(*scheduler.UnreachableError)) {
		a.say("worked out without what cannot be read: %v", err)
		return nil
	}
	return err
}

// sayFull says beside a list without living nodes that they may live, where they cannot write.
func (a *app) sayFull(t tool) {
	if t.full() {
		a.say("Redis is full: nodes cannot say that they live, and nothing is claimed; %s", freeMemory)
	}
}

// pairs writes names and values one below the other; names and values alternate.
func pairs(w io.Writer, cells ...string) error {
	tabs := newTabs(w)
	for i := 0; i+1 < len(cells); i += 2 {
		fmt.Fprintf(tabs, "%s\t%s\n", cell(cells[i]), cell(cells[i+1]))
	}
	return tabs.Flush()
}

// stamp is an instant, or nothing.
func stamp(at *scheduler.Stamp) string {
	if at == nil {
		return ""
	}
	return at.String()
}
