package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/notify"
	"github.com/escapement/escapement/scheduler/ops"
)

// putAtOnce is how many jobs are put with one call.
const putAtOnce = 1000

// runStored measures jobs stored at run time: how fast they are put, and when all nodes have them.
func (s *stage) runStored(ctx context.Context) (err error) {
	s.client = s.connect(&s.own)
	defer s.client.Close()
	heap, memory := heapOf(), s.memory(ctx)
	defer func() { err = errors.Join(err, s.stopAll()) }()
	for i := range s.count {
		if _, err := s.step(ctx, "ready, a node without jobs", s.starts(string(rune('a'+i)))); err != nil {
			return err
		}
	}
	admin, err := ops.New(s.client, "")
	if err != nil {
		return err
	}
	begun := time.Now()
	if _, err := s.step(ctx, "put", func(ctx context.Context) (*node, error) { return nil, s.put(ctx, admin, s.jobs, "H H H * * *") }); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "put a second: %d\n", int(float64(s.jobs)/time.Since(begun).Seconds()))
	if _, err := s.step(ctx, "until all nodes have all of them", s.held(admin)); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "bytes a job: %d in Redis, %d in a node\n", (s.memory(ctx)-memory)/s.jobs, (heapOf()-heap)/s.jobs/s.count)
	if err := s.nodes[len(s.nodes)-1].stop(); err != nil {
		return err
	}
	if _, err := s.step(ctx, "ready, a node started again", s.starts("z")); err != nil {
		return err
	}
	if _, err := s.step(ctx, "until it has all of them", s.held(admin)); err != nil {
		return err
	}
	if _, err := s.step(ctx, fmt.Sprintf("change %d of them", putAtOnce), func(ctx context.Context) (*node, error) {
		return nil, s.put(ctx, admin, putAtOnce, "H H H * * 1-5")
	}); err != nil {
		return err
	}
	if err := s.atRest(ctx, "at rest"); err != nil || !s.notify {
		return err
	}
	return s.notified(ctx)
}

// notified measures the nodes with a notifier beside each: while the first one looks at all jobs,
// and then between two such looks.
func (s *stage) notified(ctx context.Context) (err error) {
	if err := s.atRest(ctx, "at rest again"); err != nil { // the changes' work is done
		return err
	}
	heap := heapOf()
	life, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(s.nodes))
	defer func() {
		cancel()
		for range s.nodes {
			err = errors.Join(err, <-ended)
		}
	}()
	for range s.nodes {
		client := s.connect(&s.sent)
		tell := func(context.Context, notify.Message) error { return nil }
		n, err := notify.New(client, notify.Config{Targets: []notify.Target{{Name: "nobody", Func: tell}}})
		if err != nil {
			return err
		}
		go func() { ended <- errors.Join(n.Run(life), client.Close()) }()
	}
	if err := s.atRest(ctx, "while notification begins"); err != nil {
		return err
	}
	if err := s.atRest(ctx, "with notification"); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "bytes a job in the node that notifies: %d\n", (heapOf()-heap)/s.jobs)
	return nil
}

// put stores n jobs, each due at a time of its own.
func (s *stage) put(ctx context.Context, admin *ops.Client, n int, schedule string) error {
	for at := 0; at < n; at += putAtOnce {
		var list []jobs.Job
		for i := at; i < min(n, at+putAtOnce); i++ {
			list = append(list, jobs.Job{Name: jobName(i), Handler: "report", Schedule: schedule, Payload: []byte(fmt.Sprintf(`{"tenant":%d}`, i))})
		}
		if _, err := admin.PutJobs(ctx, list, ops.PutOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// held waits until Redis has an entry of each job, and each node reports that it has all of them.
func (s *stage) held(admin *ops.Client) func(ctx context.Context) (*node, error) {
	return func(ctx context.Context) (*node, error) {
		return nil, s.until(ctx, func() bool {
			if n, err := s.client.HLen(ctx, entries).Result(); err != nil || int(n) < s.jobs {
				return false
			}
			nodes, err := admin.ListNodes(ctx)
			for _, n := range nodes {
				if n.Jobs < s.jobs {
					return false
				}
			}
			return err == nil && len(nodes) >= s.count
		})
	}
}
