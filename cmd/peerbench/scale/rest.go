package scale

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs"
)

// lags are how late runs began, from all nodes.
type lags struct {
	mu   sync.Mutex
	late []time.Duration
}

// run is the handler of stored jobs.
func (l *lags) run(_ context.Context, run *jobs.Run) error {
	late := time.Since(run.Tick())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, late)
	return nil
}

func (l *lags) take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.late
	l.late = nil
	slices.Sort(all)
	return all
}

// atRest measures nodes that have nothing to do but the jobs' own ticks.
func (s *stage) atRest(ctx context.Context, what string) error {
	if s.rest <= 0 {
		return nil
	}
	s.lags.take()
	requests, server, nodes, begun := s.sent.requests.Load(), s.serverCPU(ctx), ownCPU(), time.Now()
	select {
	case <-time.After(s.rest):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	took := time.Since(begun).Seconds()
	late := s.lags.take()
	fmt.Fprintf(s.out, "%s for %.0f s: %d runs, %.0f requests a second, %.2f %% of a core in Redis, %.2f %% in %d nodes",
		what, took, len(late), float64(s.sent.requests.Load()-requests)/took,
		100*(s.serverCPU(ctx)-server)/took, 100*(ownCPU()-nodes)/took, len(s.nodes))
	if n := len(late); n > 0 {
		fmt.Fprintf(s.out, "; late by %.1f ms p50, %.1f ms p99", ms(late[n/2]), ms(late[n*99/100]))
	}
	fmt.Fprintln(s.out)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// serverCPU returns the redis-server's CPU time, seconds.
func (s *stage) serverCPU(ctx context.Context) float64 {
	return s.info(ctx, "cpu", "used_cpu_user") + s.info(ctx, "cpu", "used_cpu_sys")
}

// ownCPU returns the CPU time of this process, in which the nodes run, seconds.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// info is one figure of Redis' INFO, 0 when it is not there.
func (s *stage) info(ctx context.Context, section, name string) float64 {
	info, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	text, _, _ := strings.Cut(rest, "\r")
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
