package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

// tool is what a command that looks into Redis works with.
type tool struct {
	ctx  context.Context // ends at SIGINT and SIGTERM
	in   *scheduler.Inspector
	args []string
}

// inspect connects a command to Redis.
func (a *app) inspect(f func(tool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.reach(cmd, func(l *loaded, client redis.UniversalClient) error {
			in, err := scheduler.NewInspector(client, l.Namespace)
			if err != nil {
				return l.refused(err)
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f(tool{ctx, in, args})
		})
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

// pairs writes names and values one below the other; names and values alternate.
func pairs(w io.Writer, cells ...string) error {
	out := table{newTabs(w)}
	for i := 0; i+1 < len(cells); i += 2 {
		out.row(cells[i], cells[i+1])
	}
	return out.flush()
}

// stamp is an instant, or nothing.
func stamp(at *scheduler.Stamp) string {
	if at == nil {
		return ""
	}
	return at.String()
}
