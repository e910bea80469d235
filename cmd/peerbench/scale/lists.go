package scale

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/ops"
)

// lists measures each list, when all jobs have a history.
func (s *stage) lists(ctx context.Context) error {
	admin, err := ops.New(s.client, "")
	if err != nil {
		return err
	}
	if err := s.histories(ctx, admin); err != nil {
		return err
	}
	for _, l := range []struct {
		what string
		read func(ctx context.Context) error
	}{
		{"jobs list, 100 jobs", func(ctx context.Context) error {
			return second(admin.ListJobs(ctx, ops.JobFilter{Limit: 100}))
		}},
		{"jobs list, 1,000 jobs", func(ctx context.Context) error {
			return second(admin.ListJobs(ctx, ops.JobFilter{After: jobName(s.jobs / 2), Limit: 1000}))
		}},
		{"jobs get", func(ctx context.Context) error { return second(admin.GetJob(ctx, jobName(s.jobs/2))) }},
		{"runs list, 50 runs", func(ctx context.Context) error {
			return second(admin.ListRuns(ctx, ops.RunFilter{Limit: 50}))
		}},
		{"runs list --job, 50 runs", func(ctx context.Context) error {
			return second(admin.ListRuns(ctx, ops.RunFilter{Job: jobName(1), Limit: 50}))
		}},
		{"nodes list", func(ctx context.Context) error { return second(admin.ListNodes(ctx)) }},
		{"locks list, 100 locks", func(ctx context.Context) error {
			return second(admin.ListLocks(ctx, ops.LockFilter{Limit: 100}))
		}},
		{"generations list", func(ctx context.Context) error { return second(admin.ListGenerations(ctx)) }},
	} {
		if _, err := s.step(ctx, l.what, func(ctx context.Context) (*node, error) { return nil, l.read(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

// triggered is how many jobs have run.
const triggered = 100

// histories runs some jobs, and gives all jobs the row of the first one, many times.
func (s *stage) histories(ctx context.Context, admin *ops.Client) error {
	for i := range triggered {
		v, err := admin.Trigger(ctx, jobName(i), ops.TriggerOptions{})
		if err != nil {
			return err
		}
		if i < triggered-1 {
			continue
		}
		if _, err := admin.WaitRun(ctx, v); err != nil {
			return err
		}
	}
	const prefix = "{escapement:0}:history:"
	rows, err := s.client.LRange(ctx, prefix+jobName(triggered-1), -1, -1).Result()
	if err != nil || len(rows) == 0 {
		return fmt.Errorf("a job has run and has no row: %w", err)
	}
	var copies []any
	for range s.rows {
		copies = append(copies, rows[0])
	}
	for from := triggered; from < s.jobs && len(copies) > 0; from += 1000 {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < min(from+1000, s.jobs); i++ {
				p.RPush(ctx, prefix+jobName(i), copies...)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
