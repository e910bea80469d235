package scheduler_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// inspect calls f with an inspector of the cluster's namespace.
func (c *cluster) inspect(f func(ctx context.Context, i *scheduler.Inspector)) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		c.t.Fatal(err)
	}
	f(context.Background(), i)
}

// promote promotes, which must succeed.
func (c *cluster) promote(generation string, o scheduler.PromoteOptions) (p scheduler.Promotion) {
	c.t.Helper()
	c.inspect(func(ctx context.Context, i *scheduler.Inspector) {
		var err error
		if p, err = i.Promote(ctx, generation, o); err != nil {
			c.t.Errorf("promote %q: %v", generation, err)
		}
	})
	return p
}

// gap is a stretch of time of which the ticks are checked.
type gap struct{ from, to time.Time }

// each checks that every tick of an each-second job in the stretch ran, once, and returns how late the latest was.
func (g gap) each(t *testing.T, s *sink, names ...string) (longest time.Duration) {
	t.Helper()
	ran := make(map[string]map[int64]int)
	for _, r := range s.all() {
		if r.tick.Before(g.from) || !r.tick.Before(g.to) || !slices.Contains(names, r.job) {
			continue
		}
		if ran[r.job] == nil {
			ran[r.job] = make(map[int64]int)
		}
		ran[r.job][r.tick.UnixMilli()]++
		longest = max(longest, r.at.Sub(r.tick))
	}
	for _, name := range names {
		for at := g.from.Truncate(time.Second); at.Before(g.to); at = at.Add(time.Second) {
			if at.Before(g.from) {
				continue
			}
			if n := ran[name][at.UnixMilli()]; n != 1 {
				t.Errorf("%s ran %d times at %s", name, n, at.Format(time.TimeOnly))
			}
		}
	}
	return longest
}

// byLetter counts the runs in the stretch by the first letter of their nodes' names.
func (g gap) byLetter(s *sink) map[string]int {
	count := make(map[string]int)
	for _, r := range s.all() {
		if !r.tick.Before(g.from) && r.tick.Before(g.to) {
			count[r.node[:1]]++
		}
	}
	return count
}

func secondly(n int, s *sink) (list []jobs.Job, names []string) {
	for i := range n {
		j := eachSecond(fmt.Sprintf("job-%02d", i), s)
		list, names = append(list, j), append(names, j.Name)
	}
	return list, names
}

// startThree starts three nodes of a generation, each some milliseconds away.
func (c *cluster) startThree(server *redistest.Embedded, letter, generation string, list ...jobs.Job) {
	for i := range 3 {
		c.startFar(server, fmt.Sprintf("%s%d", letter, i), scheduler.Config{Generation: generation, DrainTimeout: 5 * time.Second}, list...)
	}
}

// startFar starts a node that Redis' answers take some milliseconds to reach, from 1 to 8, by its name. Without that its
// rounds, which take no time here, would go on for ever at the instant at which it found itself superseded: at a tick, so
// that it learns of a promotion when a tick is due, and never later.
func (c *cluster) startFar(server *redistest.Embedded, name string, cfg scheduler.Config, list ...jobs.Job) *running {
	var network redistest.Net
	network.Delay(time.Millisecond + time.Duration(crc32.ChecksumIEEE([]byte(name))%7000)*time.Microsecond)
	return c.startOver(network.Client(server.Options()), name, cfg, list...)
}

// tally counts shards of ticks.
type tally struct {
	mu    sync.Mutex
	ran   map[int64][]int
	late  map[int64]time.Duration
	split map[int64][]int
}

func newTally() *tally {
	return &tally{ran: make(map[int64][]int), late: make(map[int64]time.Duration)}
}

func (y *tally) add(tick time.Time, shard int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := tick.UnixMilli()
	y.ran[at] = append(y.ran[at], shard)
	y.late[at] = max(y.late[at], time.Since(tick))
}

// each checks that each tick's shards ran once, and returns how late the latest began.
func (y *tally) each(t *testing.T, from, to time.Time, shards int) (longest time.Duration) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for at := from.Truncate(time.Second).Add(time.Second); at.Before(to); at = at.Add(time.Second) {
		ran := slices.Clone(y.ran[at.UnixMilli()])
		slices.Sort(ran)
		if len(ran) != shards || len(slices.Compact(ran)) != shards {
			t.Errorf("of %s the shards %v ran", at.Format(time.TimeOnly), ran)
		}
		longest = max(longest, y.late[at.UnixMilli()])
	}
	return longest
}

// want notes into how many shards a tick was split, by one of them.
func (y *tally) want(tick time.Time, shards int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	at := tick.UnixMilli()
	if y.split == nil {
		y.split = make(map[int64][]int)
	}
	y.split[at] = append(y.split[at], shards)
}

// whole checks that all shards of a tick agree how many there are, and that each ran once.
func (y *tally) whole(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for at, ran := range y.ran {
		slices.Sort(ran)
		split := slices.Compact(slices.Clone(y.split[at]))
		if len(split) != 1 || len(ran) != split[0] || len(slices.Compact(slices.Clone(ran))) != len(ran) {
			t.Errorf("of %s the shards %v ran, of %v", time.UnixMilli(at).UTC().Format(time.TimeOnly), ran, split)
		}
	}
}
