//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

const (
	// settleIn is how long processes that are ready are left alone before they are measured.
	settleIn = 5 * time.Second
	// before is how long before a second the measured time begins, and ends.
	before = 50 * time.Millisecond
	// lateBy is how much later than that a tick may start and is counted.
	lateBy = 3 * time.Second
)

// measure measures some jobs on a redis-server of their own.
func measure(ctx context.Context, o options, role string, jobs int) (f figures, err error) {
	dir, err := os.MkdirTemp("", "tickbench")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, server.Kill()) }()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	ctx, stop := context.WithCancel(ctx)
	defer stop() // kills those that have not reported
	count := o.nodes
	if role == roleCron {
		count = 1
	}
	all := make([]*process, count)
	for i := range all {
		args := []string{"-as", role, "-addr", server.Addr(), "-name", "n" + strconv.Itoa(i+1), "-jobs", strconv.Itoa(jobs), "-slots", strconv.Itoa(o.slots)}
		if all[i], err = startProcess(ctx, args); err != nil {
			return f, err
		}
	}
	for _, p := range all {
		if line, err := p.out.ReadString('\n'); err != nil || line != wordReady+"\n" {
			return f, fmt.Errorf("a process was not ready: %w, %w", err, p.cmd.Wait())
		}
	}
	return observe(ctx, o, client, all, jobs)
}

// observe measures processes that work, and ends them.
func observe(ctx context.Context, o options, client *redis.Client, all []*process, jobs int) (f figures, err error) {
	from := time.Now().Add(settleIn).Truncate(time.Second).Add(time.Second)
	to := from.Add(o.span)
	redisFirst, err := at(ctx, from.Add(-before), client, all, wordBegin)
	if err != nil {
		return f, err
	}
	redisThen, err := at(ctx, to.Add(-before), client, all, wordEnd)
	if err != nil {
		return f, err
	}
	if _, err := at(ctx, to.Add(lateBy), client, all, wordReport); err != nil {
		return f, err
	}
	var starts []start
	var cpu float64
	for _, p := range all {
		var r report
		if err := json.NewDecoder(p.out).Decode(&r); err != nil {
			return f, fmt.Errorf("read a report: %w", err)
		}
		if err := p.cmd.Wait(); err != nil {
			return f, fmt.Errorf("a process: %w", err)
		}
		starts, cpu = append(starts, r.Starts...), cpu+r.CPU
	}
	f = tally(starts, jobs, from.Unix(), to.Unix())
	f.nodes, f.redis, f.scripts = cpu, redisThen.cpu-redisFirst.cpu, redisThen.scripts-redisFirst.scripts
	return f, nil
}

// at tells all processes something at an instant, and reads what Redis has spent by then.
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
	return spentBy(ctx, client)
}

// spent is what Redis has done since it was started.
type spent struct {
	cpu     float64 // seconds
	scripts int     // calls of them
}

func spentBy(ctx context.Context, client *redis.Client) (s spent, err error) {
	info, err := client.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user", "used_cpu_sys":
			var seconds float64
			if seconds, err = strconv.ParseFloat(value, 64); err != nil {
				return s, fmt.Errorf("INFO: %w", err)
			}
			s.cpu += seconds
		case "cmdstat_eval", "cmdstat_evalsha":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, err := strconv.Atoi(calls)
			if err != nil {
				return s, fmt.Errorf("INFO: %w", err)
			}
			s.scripts += n
		}
	}
	return s, nil
}

// process is a measured process.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// startProcess starts this program once more. It is killed when ctx ends.
func startProcess(ctx context.Context, args []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, args...)} //nolint:gosec // G204: this program itself
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}
