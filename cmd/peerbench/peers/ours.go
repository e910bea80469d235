package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// idleJobs is how many jobs an idle node has; none is due before New Year.
const idleJobs = 1000

// startOurs starts a node. Its slots are twice its share of the jobs, or the default where that is
// more: a node that loses its neighbours carries their jobs too.
func startOurs(ctx context.Context, cfg Config) (Stop, error) {
	return startNode(ctx, cfg, cfg.Jobs, everySecond)
}

func startIdle(ctx context.Context, cfg Config) (Stop, error) {
	return startNode(ctx, cfg, idleJobs, "0 0 1 1 *")
}

func startNode(ctx context.Context, cfg Config, count int, schedule string) (Stop, error) {
	client := redis.NewClient(&redis.Options{Addr: cfg.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	reg := jobs.NewRegistry()
	for i := range count {
		err := reg.Add(jobs.Job{Name: jobName(i), Schedule: schedule, Func: func(_ context.Context, run *jobs.Run) error {
			cfg.Note(i, run.Tick())
			return nil
		}})
		if err != nil {
			return nil, err
		}
	}
	node, err := scheduler.New(client, reg, scheduler.Config{
		Name:       fmt.Sprintf("n%d", cfg.Index+1),
		MaxRunning: max(512, 2*count/cfg.Nodes),
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- errors.Join(node.Run(ctx), client.Close()) }()
	stop := func() error {
		cancel()
		return <-done
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for node.Ready() != nil {
		select {
		case <-look.C:
		case err := <-done:
			cancel()
			return nil, errors.Join(errors.New("the node ended before it was ready"), err)
		}
	}
	return stop, nil
}

func jobName(i int) string { return fmt.Sprintf("job-%05d", i) }
