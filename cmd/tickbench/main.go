//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// options say what is measured.
type options struct {
	jobs  []int
	nodes int
	slots int
	span  time.Duration
}

func main() {
	o := options{jobs: []int{1, 1000, 10_000}}
	var as child
	flag.Func("jobs", "how many jobs are due at each second, separated by commas (default 1,1000,10000)", func(s string) (err error) {
		o.jobs, err = numbers(s)
		return err
	})
	flag.IntVar(&o.nodes, "nodes", 3, "how many nodes run them")
	flag.IntVar(&o.slots, "slots", 0, "max_running of each node; 0: its default")
	flag.DurationVar(&o.span, "for", 10*time.Second, "how long each number of jobs is measured, whole seconds")
	flag.StringVar(&as.role, "as", "", "be one of the measured processes, node or cron; what it is told comes on stdin")
	flag.StringVar(&as.addr, "addr", "", "with -as: the redis-server")
	flag.StringVar(&as.name, "name", "", "with -as: the node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if as.role != "" {
		as.jobs, as.slots = o.jobs[0], o.slots
		err = as.run(ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tickbench:", err)
		os.Exit(1)
	}
}

func numbers(s string) (all []int, err error) {
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 100_000 {
			return nil, fmt.Errorf("%q is no number from 1 to 100000", word)
		}
		all = append(all, n)
	}
	return all, nil
}

// run measures each number of jobs and writes a line for it, and one for cron alone.
func run(ctx context.Context, o options) error {
	if o.nodes < 1 || o.slots < 0 || o.span < time.Second || o.span%time.Second != 0 {
		return errors.New("-nodes must be at least 1, -slots 0 or more, -for some whole seconds")
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "jobs a second, for %s\twho\tticks due\tonce\ttwice\tnever\tlag p50\tp99\tmost\tCPU of nodes\tand of Redis, s per 1,000 ticks\tscripts a tick\n", o.span)
	var bad error
	for _, jobs := range o.jobs {
		for _, role := range []string{roleCron, roleNode} {
			m, err := measure(ctx, o, role, jobs)
			if err != nil {
				return fmt.Errorf("%d jobs, %s: %w", jobs, role, err)
			}
			if role == roleNode && m.once != m.due {
				bad = errors.New("not each tick ran once")
			}
			m.line(out, jobs, o.who(role))
		}
	}
	return errors.Join(out.Flush(), bad)
}

// who is who runs the jobs, for people.
func (o options) who(role string) string {
	switch {
	case role == roleCron:
		return "robfig/cron, one process, no lock"
	case o.slots == 0:
		return fmt.Sprintf("%d nodes", o.nodes)
	}
	return fmt.Sprintf("%d nodes of %d slots", o.nodes, o.slots)
}
