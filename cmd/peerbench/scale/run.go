package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// options are the settings of the measurement.
type options struct {
	jobs, rows, count int
	stored, notify    bool
	rest              time.Duration
}

// Run measures as the flags in args choose, and prints a table.
func Run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("scale", flag.ExitOnError)
	flags.IntVar(&o.jobs, "jobs", 100_000, "how many jobs there are in the namespace")
	flags.IntVar(&o.rows, "rows", 10, "history rows of each job, while lists are measured")
	flags.BoolVar(&o.stored, "stored", false, "jobs that are stored at run time, and neither lists nor an emptied Redis")
	flags.BoolVar(&o.notify, "notify", false, "what notification costs, with -stored: the nodes at rest without it, while it begins, and with it")
	flags.IntVar(&o.count, "nodes", 3, "how many nodes there are, with -stored")
	flags.DurationVar(&o.rest, "rest", 30*time.Second, "how long nodes are measured that have only the jobs' own ticks to do, with -stored")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir, Args: []string{"--appendonly", "no"}}) // a stopped server comes back empty
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Kill()) }()
	s := &stage{options: o, server: server, out: tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)}
	fmt.Fprintf(s.out, "%d jobs, %d rows each for the lists\ttime\tto Redis\tfrom Redis\tlongest command\n", o.jobs, o.rows)
	defer s.out.Flush()
	if o.stored {
		return s.runStored(ctx)
	}
	return s.run(ctx)
}

// run makes one measurement after another, each on the records that the earlier ones have left.
func (s *stage) run(ctx context.Context) (err error) {
	s.client = s.connect(&s.own)
	defer s.client.Close()
	heap, memory := heapOf(), s.memory(ctx)
	a, err := s.step(ctx, "ready, empty Redis", s.starts("a"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stopAll()) }()
	fmt.Fprintf(s.out, "bytes a job: %d in Redis, %d in the node\n", (s.memory(ctx)-memory)/s.jobs, (heapOf()-heap)/s.jobs)
	if err := a.stop(); err != nil {
		return err
	}
	if _, err := s.step(ctx, "ready, started again alone", s.starts("a")); err != nil {
		return err
	}
	for _, name := range []string{"b", "c"} {
		if _, err := s.step(ctx, "ready, one more node", s.starts(name)); err != nil {
			return err
		}
	}
	if err := s.nodes[2].stop(); err != nil {
		return err
	}
	if _, err := s.step(ctx, "ready, one of three started again", s.starts("c")); err != nil {
		return err
	}
	if err := s.lists(ctx); err != nil {
		return err
	}
	return s.emptied(ctx)
}

// heapOf returns how many bytes of the heap are in use by live objects.
func heapOf() int {
	for range 2 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// emptied measures how long it takes until all jobs have their cursors again, when Redis comes back
// empty.
func (s *stage) emptied(ctx context.Context) error {
	if err := s.server.Stop(); err != nil {
		return err
	}
	if err := s.server.Restart(); err != nil {
		return err
	}
	_, err := s.step(ctx, "all jobs told of and all nodes ready, emptied Redis", func(ctx context.Context) (*node, error) {
		return nil, s.until(ctx, func() bool {
			for _, n := range s.nodes {
				if n.Ready() != nil {
					return false
				}
			}
			n, err := s.client.HLen(ctx, entries).Result()
			return err == nil && int(n) == s.jobs
		})
	})
	return err
}

// until waits until yes returns true.
func (s *stage) until(ctx context.Context, yes func() bool) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !yes() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
