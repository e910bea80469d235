package ticks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/peerbench/figures"
	"github.com/escapement/escapement/locking/redistest"
)

const (
	// readyWithin is how long processes may take to be ready, and to report.
	readyWithin = time.Minute
	// settleIn is how long processes that are ready are left alone before they are measured.
	settleIn = 4 * time.Second
	// before is how long before a second the measured time begins, and ends.
	before = 50 * time.Millisecond
	// lateBy is how much later than that a tick may start and is counted.
	lateBy = 2 * time.Second
)

// measure measures one contender on a redis-server of its own. The row names the contender also
// beside an error.
func measure(ctx context.Context, o options, m measurement) (row figures.Row, err error) {
	row = figures.Row{Who: m.peer.Name, Title: m.peer.Title, Jobs: m.jobs, Nodes: m.nodes, Round: m.round}
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(dir)
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, server.Kill()) }()
	client := redis.NewClient(redistest.ClientOptions(server.Addr()))
	defer client.Close()

	ctx, stop := context.WithCancel(ctx)
	defer stop() // kills processes that have not reported
	all, err := startAll(ctx, m, server.Addr())
	if err != nil {
		return row, err
	}
	err = observe(ctx, o, m, client, all, &row)
	return row, err
}

func startAll(ctx context.Context, m measurement, addr string) (all []*process, err error) {
	for i := range m.nodes {
		p, err := startProcess(ctx, []string{ChildWord, "-who", m.peer.Name, "-addr", addr, "-index", strconv.Itoa(i),
			"-nodes", strconv.Itoa(m.nodes), "-jobs", strconv.Itoa(m.jobs)})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if err := p.hear(wordReady); err != nil {
			return nil, fmt.Errorf("a process was not ready: %w", err)
		}
	}
	return all, nil
}

// observe measures processes that work, and ends them.
func observe(ctx context.Context, o options, m measurement, client *redis.Client, all []*process, row *figures.Row) error {
	if err := client.Ping(ctx).Err(); err != nil { // connects before it counts
		return err
	}
	from := time.Now().Add(settleIn).Truncate(time.Second).Add(time.Second)
	to := from.Add(o.span)
	first, err := at(ctx, from.Add(-before), client, all, wordBegin)
	if err != nil {
		return err
	}
	then, err := at(ctx, to.Add(-before), client, all, wordEnd)
	if err != nil {
		return err
	}
	if _, err := at(ctx, to.Add(lateBy), client, all, wordReport); err != nil {
		return err
	}
	var starts []figures.Start
	for _, p := range all {
		r, err := p.report()
		if err != nil {
			return fmt.Errorf("read a report: %w", err)
		}
		starts = append(starts, r.Starts...)
		row.NodesCPU += r.CPU
		row.NodeRSS = max(row.NodeRSS, r.RSS)
		row.Allocs += r.Allocs
	}
	row.Tally = figures.Count(starts, row.Jobs, from.Unix(), to.Unix())
	row.Survived = 2*(row.Once+row.Twice) >= row.Due
	if then.machine > 0 {
		row.OthersCPU = max(0, then.machine-first.machine-row.NodesCPU-(then.cpu-first.cpu))
	}
	if m.peer.NoRedis {
		return nil
	}
	row.RedisCPU = then.cpu - first.cpu
	row.Commands, row.Scripts = then.commands-first.commands-1, then.scripts-first.scripts // less the first INFO
	row.RedisRSS = then.rss
	return nil
}

// at sends all processes a command at an instant, and reads how much Redis and the machine have
// spent by then.
func at(ctx context.Context, when time.Time, client *redis.Client, all []*process, word string) (spent, error) {
	timer := time.NewTimer(time.Until(when))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return spent{}, context.Cause(ctx)
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in, word); err != nil {
			return spent{}, fmt.Errorf("a process does not listen: %w", err)
		}
	}
	s, err := spentBy(ctx, client)
	s.machine = busy()
	return s, err
}
