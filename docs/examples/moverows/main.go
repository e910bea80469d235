// Command moverows moves the rows of one table to another: one job in 16 shards, over as many nodes
// as you start. Copy it. The job is in move.go, all SQL in table.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// settings are the command line.
type settings struct {
	db       string
	fill     int
	redis    string
	name     string
	schedule string
	pause    time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "moverows:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	t, err := openTable(ctx, s.db)
	if err != nil {
		return err
	}
	defer t.close()
	if s.fill > 0 {
		return t.fill(ctx, s.fill)
	}
	return serve(ctx, s, t)
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("moverows", flag.ContinueOnError)
	f.StringVar(&s.db, "db", "rows.db", "the database, a file that all nodes can open")
	f.IntVar(&s.fill, "fill", 0, "put that many new rows into source and end")
	f.StringVar(&s.redis, "redis", "localhost:6379", "where Redis listens")
	f.StringVar(&s.name, "name", "", "the node's name, another one for each process (default the host's)")
	f.StringVar(&s.schedule, "schedule", "@every 10s", "when rows are moved")
	f.DurationVar(&s.pause, "pause", 50*time.Millisecond, "between two batches of a shard, so that others get at the table too")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%q: everything is a flag; see -help", f.Arg(0))
	}
	return s, nil
}

// serve runs a node until ctx and the node's runs have ended.
func serve(ctx context.Context, s settings, t *table) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	reg := jobs.NewRegistry()
	if err := reg.Add(moveRows(t, s.schedule, s.pause)); err != nil {
		return err
	}
	node, err := scheduler.New(client, reg, scheduler.Config{
		Name:         s.name,
		DrainTimeout: 10 * time.Second,
		Logger:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})), // which shows each run
	})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}
