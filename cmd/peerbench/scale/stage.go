package scale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// entries is the key of all jobs in a namespace of one partition.
const entries = "{escapement:0}:jobs"

// stage is a redis-server, the nodes on it, and where the figures go.
type stage struct {
	options
	server *redistest.Server
	client *redis.Client // counts into own
	own    traffic
	sent   traffic // of the nodes
	nodes  []*node
	lags   lags
	out    *tabwriter.Writer
}

// traffic counts the bytes to and from Redis, and the requests.
type traffic struct{ to, from, requests atomic.Int64 }

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	bytes *traffic
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.from.Add(int64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.to.Add(int64(n))
	c.bytes.requests.Add(1)
	return n, err
}

func (s *stage) connect(bytes *traffic) *redis.Client {
	o := redistest.ClientOptions(s.server.Addr())
	var d net.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		return counted{c, bytes}, err
	}
	return redis.NewClient(o)
}

// node is a node that runs.
type node struct {
	*scheduler.Node
	stop func() error
}

// starts is a step that starts a node and waits until it is ready.
func (s *stage) starts(name string) func(ctx context.Context) (*node, error) {
	return func(ctx context.Context) (*node, error) {
		reg := jobs.NewRegistry()
		if err := reg.Handle("report", s.lags.run); err != nil {
			return nil, err
		}
		for i := range s.jobs { // due once a day, each at a time of its own
			if s.stored {
				break
			}
			if err := reg.Add(jobs.Job{Name: jobName(i), Schedule: "H H * * *", Func: func(context.Context, *jobs.Run) error { return nil }}); err != nil {
				return nil, err
			}
		}
		client := s.connect(&s.sent)
		n, err := scheduler.New(client, reg, scheduler.Config{
			Name: name, Revision: "2026-11-26T00:00:00Z",
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		if err != nil {
			return nil, err
		}
		life, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- errors.Join(n.Run(life), client.Close()) }()
		one := &node{Node: n}
		one.stop = func() error {
			cancel()
			s.drop(one)
			return <-done
		}
		s.nodes = append(s.nodes, one)
		return one, s.until(ctx, func() bool { return n.Ready() == nil })
	}
}

func (s *stage) drop(gone *node) {
	var left []*node
	for _, n := range s.nodes {
		if n != gone {
			left = append(left, n)
		}
	}
	s.nodes = left
}

func (s *stage) stopAll() (err error) {
	for len(s.nodes) > 0 {
		err = errors.Join(err, s.nodes[0].stop())
	}
	return err
}

func jobName(i int) string { return fmt.Sprintf("job-%06d", i) }

// step does one step and prints how long it took, the bytes to and from Redis, and the longest
// single command.
func (s *stage) step(ctx context.Context, what string, f func(ctx context.Context) (*node, error)) (*node, error) {
	s.client.ConfigSet(ctx, "slowlog-log-slower-than", "1000")
	s.client.ConfigSet(ctx, "slowlog-max-len", "4096")
	s.client.SlowLogReset(ctx)
	to, from := s.own.to.Load()+s.sent.to.Load(), s.own.from.Load()+s.sent.from.Load()
	begun := time.Now()
	n, err := f(ctx)
	took := time.Since(begun)
	to, from = s.own.to.Load()+s.sent.to.Load()-to, s.own.from.Load()+s.sent.from.Load()-from
	if err != nil {
		return n, fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(s.out, "%s\t%d ms\t%d KiB\t%d KiB\t%s\n", what, took.Milliseconds(), to>>10, from>>10, s.longest(ctx))
	return n, s.out.Flush()
}

// longest returns the command that has blocked Redis longest since the slow log was emptied, and
// for how long.
func (s *stage) longest(ctx context.Context) string {
	logs, err := s.client.SlowLogGet(ctx, 4096).Result()
	if err != nil || len(logs) == 0 {
		return "below 1 ms"
	}
	top := logs[0]
	for _, l := range logs {
		if l.Duration > top.Duration {
			top = l
		}
	}
	return fmt.Sprintf("%d ms, %s", top.Duration.Milliseconds(), strings.ToLower(top.Args[0]))
}

// memory returns Redis' used memory, bytes.
func (s *stage) memory(ctx context.Context) int { return int(s.info(ctx, "memory", "used_memory")) }
