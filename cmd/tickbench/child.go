//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// Roles of the measured processes.
const (
	roleNode = "node"
	roleCron = "cron"
)

// What a measured process is told, a line each; it answers wordReady when it works, and the last with a report.
const (
	wordReady  = "ready"
	wordBegin  = "begin"  // the measured time
	wordEnd    = "end"    // of it
	wordReport = "report" // and end
)

// report is what a process has seen from begin to report, and the CPU time that it has taken from begin to end.
type report struct {
	Starts []start
	CPU    float64 // seconds
}

// child is one measured process.
type child struct {
	role, addr, name string
	jobs, slots      int

	mu     sync.Mutex
	seen   bool // what starts is noted
	report report
}

// run does what it is told on in until it has reported on out.
func (c *child) run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	works := c.cron
	if c.role == roleNode {
		works = c.node
	}
	ended, err := works(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, wordReady)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		c.mu.Lock()
		switch lines.Text() {
		case wordBegin:
			c.seen, c.report.CPU = true, -cpu()
		case wordEnd:
			c.report.CPU += cpu()
		case wordReport:
			c.seen = false
			err := json.NewEncoder(out).Encode(c.report)
			c.mu.Unlock()
			stop()
			return errors.Join(err, <-ended)
		}
		c.mu.Unlock()
	}
	return errors.Join(lines.Err(), errors.New("nobody wants a report"))
}

// note notes a call of a job's function.
func (c *child) note(job int, tick time.Time) {
	lag := time.Since(tick)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen {
		c.report.Starts = append(c.report.Starts, start{job, tick.Unix(), lag})
	}
}

// node starts a node and returns when it is ready, with what its end will say.
func (c *child) node(ctx context.Context) (ended <-chan error, err error) {
	client := redis.NewClient(&redis.Options{Addr: c.addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	reg := jobs.NewRegistry()
	for i := range c.jobs {
		err := reg.Add(jobs.Job{Name: fmt.Sprintf("job-%05d", i), Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
			c.note(i, run.Tick())
			return nil
		}})
		if err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	node, err := scheduler.New(client, reg, scheduler.Config{Name: c.name, MaxRunning: c.slots, Logger: log})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(node.Run(ctx), client.Close()) }()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for node.Ready() != nil {
		select {
		case <-look.C:
		case err := <-done:
			return nil, errors.Join(errors.New("the node ended before it was ready"), err)
		}
	}
	return done, nil
}

// cron starts the jobs without a node, a lock or a Redis. Its jobs are not told their tick: it is the second in which
// they are called.
func (c *child) cron(ctx context.Context) (ended <-chan error, err error) {
	runner := cron.New(cron.WithSeconds())
	for i := range c.jobs {
		if _, err := runner.AddFunc("* * * * * *", func() { c.note(i, time.Now().Truncate(time.Second)) }); err != nil {
			return nil, err
		}
	}
	runner.Start()
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		<-runner.Stop().Done()
		done <- nil
	}()
	return done, nil
}

// cpu is the CPU time that this process has taken, in seconds.
func cpu() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // never fails for oneself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
