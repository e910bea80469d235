package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// pieces is the sink of sharded jobs.
type pieces struct {
	mu   sync.Mutex
	runs []piece
}

type piece struct {
	tick, at       time.Time
	shard, attempt int
	node, param    string
	payload        string
	token          int64
}

func (p *pieces) write(r *jobs.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, piece{r.Tick(), time.Now(), r.Shard(), r.Attempt(), r.Node(), r.Param(), string(r.Payload()), r.Token()})
}

// all are the runs so far.
func (p *pieces) all() []piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.runs)
}

// check holds P1 and P3 against the sink and returns how many shards of each tick ran.
func (p *pieces) check(t *testing.T) map[time.Time]int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	ran, tokens, ticks := make(map[string]string), make(map[int64]bool), make(map[time.Time]int)
	for _, r := range p.runs {
		key := fmt.Sprintf("%s shard %d attempt %d", r.tick.Format(time.TimeOnly), r.shard, r.attempt)
		if by, twice := ran[key]; twice {
			t.Errorf("P1: %s ran on %s and on %s", key, by, r.node)
		}
		if tokens[r.token] {
			t.Errorf("P3: %s has the token of another run, %d", key, r.token)
		}
		ran[key], tokens[r.token] = r.node, true
		ticks[r.tick]++
	}
	return ticks
}

func sharded(shards int, schedule string, f jobs.Func) jobs.Job {
	return jobs.Job{Name: "move", Schedule: schedule, TTL: 5 * time.Second, Shards: shards, Func: f}
}

func TestShardsRunAtOnceOnAllNodes(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		p := &pieces{}
		j := sharded(16, "@every 10s", func(_ context.Context, r *jobs.Run) error {
			p.write(r)
			time.Sleep(time.Second)
			return nil
		})
		for shard := range 16 {
			j.Params = append(j.Params, fmt.Sprintf("part %d, of |16", shard))
		}
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, scheduler.Config{}, j)
		}
		time.Sleep(45 * time.Second)
		c.end()
		ticks := p.check(t)
		if len(ticks) < 4 {
			t.Errorf("%d ticks ran, want 4", len(ticks))
		}
		byNode := make(map[string]int)
		for _, r := range p.all() {
			byNode[r.tick.String()+r.node]++
			if r.at.Sub(r.tick) > 20*time.Millisecond || r.param != j.Params[r.shard] {
				t.Errorf("%+v: late, or the wrong parameter", r)
			}
		}
		for tick, n := range ticks {
			if n != 16 {
				t.Errorf("%s: %d of 16 shards", tick, n)
			}
		}
		for where, n := range byNode {
			if n > 7 { // 115 % of a third, rounded up
				t.Errorf("%s runs %d shards of one tick", where, n)
			}
		}
		whole := 0
		for _, r := range c.runs("move") {
			if r.Whole {
				whole++
				if r.Outcome != "succeeded" || r.Shards != 16 || r.DurationMS < 1000 {
					t.Errorf("%+v", r)
				}
			}
		}
		if whole != len(ticks) {
			t.Errorf("%d ticks are recorded as a whole, %d ran", whole, len(ticks))
		}
	})
}

// A node dies with shards that run, and with some that it has not asked for. Each fails over alone.
func TestShardsFailOverAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		p := &pieces{}
		j := sharded(12, "@every 30s", func(ctx context.Context, r *jobs.Run) error {
			p.write(r)
			select {
			case <-time.After(3 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		j.OnCrash = jobs.OnCrashRerun
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, j)
		c.start("b", scheduler.Config{}, j)
		c.start("c", scheduler.Config{}, j)
		start := time.Now().Truncate(30 * time.Second).Add(30 * time.Second)
		time.Sleep(time.Until(start.Add(time.Second))) // all run
		network.Cut()
		time.Sleep(time.Until(start.Add(29 * time.Second)))
		first, again := 0, 0
		for _, r := range p.all() {
			if r.attempt == 1 {
				first++
			} else if again++; r.node == "doomed" {
				t.Errorf("%+v: on the node that is gone", r)
			}
		}
		if first != 12 || again == 0 || again > 5 {
			t.Errorf("%d shards and %d of them again; want 12, and those of one node again", first, again)
		}
		time.Sleep(time.Until(start.Add(34 * time.Second))) // another tick; the roster has forgotten the node
		late := 0
		for _, r := range p.all() {
			if r.tick.Equal(start.Add(30*time.Second)) && r.at.Sub(r.tick) > 20*time.Millisecond {
				late++
			}
		}
		if late > 0 {
			t.Errorf("%d shards of the next tick started late", late)
		}
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		p.check(t)
		if got := outcomes(c.runs("move")); got["abandoned(lease lapsed)"] != int64(again) {
			t.Errorf("%v, want %d abandoned", got, again)
		}
	})
}

// The owner of some shards is dead, and nobody knows yet: they start within the failover bound.
func TestShardsOfADeadNodeStartElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		p := &pieces{}
		j := sharded(8, "@every 10s", func(_ context.Context, r *jobs.Run) error {
			p.write(r)
			return nil
		})
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, j)
		c.start("b", scheduler.Config{}, j)
		start := time.Now().Truncate(10 * time.Second).Add(20 * time.Second)
		time.Sleep(time.Until(start.Add(-time.Second)))
		network.Cut()
		time.Sleep(time.Until(start.Add(9 * time.Second)))
		n := 0
		for _, r := range p.all() {
			if r.tick.Equal(start) {
				n++
				if r.at.Sub(start) > 2*time.Second {
					t.Errorf("P6: %+v", r)
				}
			}
		}
		if n != 8 {
			t.Errorf("%d of 8 shards ran", n)
		}
		network.Heal()
		time.Sleep(10 * time.Second)
		c.end()
		p.check(t)
	})
}
