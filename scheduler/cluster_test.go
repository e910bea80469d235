package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// sink is what the jobs of a test write to: it knows nothing of the scheduler's records.
type sink struct {
	mu   sync.Mutex
	runs []sunk
}

type sunk struct {
	job, node string
	tick, at  time.Time
	token     int64
	trigger   jobs.Trigger
}

func (s *sink) write(r *jobs.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, sunk{r.Job(), r.Node(), r.Tick(), time.Now(), r.Token(), r.Trigger()})
}

func (s *sink) all() []sunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sunk(nil), s.runs...)
}

// check holds P1 and P3 against the sink: each (job, tick) at most once, not before its time,
// tokens of a job only growing in the order of writing.
func (s *sink) check(t *testing.T) {
	t.Helper()
	ran, token := make(map[string]string), make(map[string]int64)
	for _, r := range s.all() {
		key := fmt.Sprint(r.job, " ", r.tick.Format(time.RFC3339Nano))
		if by, twice := ran[key]; twice && r.trigger != jobs.TriggerManual {
			t.Errorf("P1: %s ran on %s and on %s", key, by, r.node)
		}
		ran[key] = r.node
		if r.at.Before(r.tick) {
			t.Errorf("%s ran %s early", key, r.tick.Sub(r.at))
		}
		if r.token <= token[r.job] {
			t.Errorf("P3: %s: token %d after %d", key, r.token, token[r.job])
		}
		token[r.job] = r.token
	}
}

// ticks are the ticks of a job that ran, in order of writing.
func (s *sink) ticks(job string) []time.Time {
	var ticks []time.Time
	for _, r := range s.all() {
		if r.job == job {
			ticks = append(ticks, r.tick)
		}
	}
	return ticks
}

// logs collects what nodes say, so that a test can ask for it.
type logs struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// cluster is a namespace with nodes in one process.
type cluster struct {
	t      *testing.T
	logs   *logs
	client func() *redis.Client
	nodes  []*running
}

// nodeName is the key of a node's name in the context that it is run with.
type nodeName struct{}

type running struct {
	*scheduler.Node
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func (c *cluster) start(name string, cfg scheduler.Config, list ...jobs.Job) *running {
	return c.startOver(c.client(), name, cfg, list...)
}

func (c *cluster) startOver(client *redis.Client, name string, cfg scheduler.Config, list ...jobs.Job) *running {
	c.t.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	cfg.Name, cfg.Logger = name, slog.New(slog.NewTextHandler(io.Writer(c.logs), nil))
	n, err := scheduler.New(client, reg, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), nodeName{}, name))
	r := &running{Node: n, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = n.Run(ctx)
		if err := client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			c.t.Error(err)
		}
	}()
	c.nodes = append(c.nodes, r)
	return r
}

// leave stops a node and waits until Run has returned.
func (c *cluster) leave(r *running) {
	c.t.Helper()
	r.stop()
	<-r.done
	if r.err != nil {
		c.t.Errorf("node %s: %v", r.Name(), r.err)
	}
}

// end stops all nodes, checks that the books close, and says on failure what the nodes said.
func (c *cluster) end() {
	c.t.Helper()
	for _, r := range c.nodes {
		r.stop()
	}
	for _, r := range c.nodes {
		c.leave(r)
	}
	client := c.client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	wrong, err := i.Verify(context.Background(), "")
	if err != nil {
		c.t.Error(err)
	}
	for _, w := range wrong {
		c.t.Errorf("P2: %s: %s", w.Job, w.What)
	}
	if c.t.Failed() {
		c.t.Log(c.logs)
	}
}

// runs reads the history of a job, newest first.
func (c *cluster) runs(job string) []scheduler.RunView {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	runs, err := i.Runs(context.Background(), scheduler.RunFilter{Job: job})
	if err != nil {
		c.t.Fatal(err)
	}
	return runs
}

func outcomes(runs []scheduler.RunView) map[string]int64 {
	count := make(map[string]int64)
	for _, r := range runs {
		key := r.Outcome
		if r.Reason != "" {
			key += "(" + r.Reason + ")"
		}
		ticks := int64(1)
		if r.Count != nil {
			ticks = *r.Count // 0: a definition was replaced, and no tick
			if ticks == 0 && r.Reason == "definition replaced" {
				continue
			}
			ticks = max(1, ticks)
		}
		count[key] += ticks
	}
	return count
}

func redisZ(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }
