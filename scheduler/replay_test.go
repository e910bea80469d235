package scheduler_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// arrivals collects, of the scripts called with one key and not with another, the jobs whose
// histories they were handed, in the order of arrival.
type arrivals struct {
	mu            sync.Mutex
	with, without string
	jobs          []string
}

func (s *arrivals) hook(_ *server.Peer, cmd string, args ...string) bool {
	ends := func(end string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, end) })
	}
	if cmd != "EVALSHA" || !ends(s.with) || ends(s.without) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range args {
		if _, job, is := strings.Cut(a, ":history:"); is && !slices.Contains(s.jobs, job) {
			s.jobs = append(s.jobs, job)
		}
	}
	return false
}

// inOrder checks that n jobs came by partition, and in each by name.
func (s *arrivals) inOrder(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	want := slices.Clone(s.jobs)
	slices.SortFunc(want, func(a, b string) int {
		return cmp.Or(ledger.Partition(a, 16)-ledger.Partition(b, 16), strings.Compare(a, b))
	})
	if len(s.jobs) != n || !slices.Equal(want, s.jobs) {
		t.Errorf("%d of %d jobs came, in the order %v", len(s.jobs), n, s.jobs)
	}
}

func TestJobsAreRegisteredInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		calls := &arrivals{with: ":defs", without: ":runs"}
		redis.SetHook(calls.hook)
		var list []jobs.Job
		for i := range 100 {
			list = append(list, eachSecond(fmt.Sprintf("job-%03d", i), &sink{}))
		}
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(time.Second)
		calls.inOrder(t, 100)
	})
}

func TestLapsedLeasesAreReapedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		const n = 60
		client := redis.Client()
		defer client.Close()
		ctx, now := context.Background(), time.Now().UnixMilli()
		l, err := ledger.Open(ctx, client, ledger.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			name := fmt.Sprintf("job-%03d", i)
			if _, err := l.Define(ctx, now, []ledger.Definition{{Job: name, Digest: "d", Text: []byte("{}"), Cursor: now}}); err != nil {
				t.Fatal(err)
			}
			// Ids in the order of jobs: leases that lapse together are found in the order of their ids.
			_, err := l.Claim(ctx, ledger.Claimer{ID: "gone", Name: "gone"}, now, []ledger.Claim{{Job: name, Digest: "d",
				Run: fmt.Sprintf("run-%03d", i), TTL: 5 * time.Second, From: now, Tick: now, Next: now + 3_600_000, Trigger: jobs.TriggerSchedule}})
			if err != nil {
				t.Fatal(err)
			}
		}
		calls := &arrivals{with: ":leases", without: ":due"}
		redis.SetHook(calls.hook)
		idle := eachSecond("idle", &sink{})
		idle.Schedule = "0 0 1 1 *"
		c.start("a", scheduler.Config{}, idle)
		time.Sleep(30 * time.Second)
		calls.inOrder(t, n)
	})
}

// A node and all its runs have ids of Config.NewID, and no id is drawn that is not used.
func TestIDsComeFromTheConfig(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var drawn atomic.Int64
		newID := func() string { return fmt.Sprintf("id-%04d", drawn.Add(1)) }
		n := c.start("a", scheduler.Config{NewID: newID}, eachSecond("one", &sink{}), eachSecond("two", &sink{}))
		if n.ID() != "id-0001" {
			t.Errorf("the node is %s, want the first id", n.ID())
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		c.leave(n)
		runs := append(c.runs("one"), c.runs("two")...)
		seen := make(map[string]bool)
		for _, r := range runs {
			if seen[r.Run] || !strings.HasPrefix(r.Run, "id-") {
				t.Errorf("run %q", r.Run)
			}
			seen[r.Run] = true
		}
		if len(runs) < 18 || int64(len(runs))+1 != drawn.Load() {
			t.Errorf("%d runs of %d ids; want one id for the node and one for each run", len(runs), drawn.Load())
		}
	})
}

// Runs of one tick come in the order of their jobs, also where a limit cuts between them.
func TestRunsOfOneTickAreListedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		var list []jobs.Job
		for i := range 20 {
			job := eachSecond(fmt.Sprintf("job-%02d", i), &sink{})
			job.Schedule = "@every 1m"
			list = append(list, job)
		}
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(61 * time.Second)
		client := redis.Client()
		defer client.Close()
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		runs, err := i.Runs(context.Background(), scheduler.RunFilter{Limit: 15})
		if err != nil {
			t.Fatal(err)
		}
		for k, r := range runs {
			if want := fmt.Sprintf("job-%02d", k); r.Job != want || len(runs) != 15 {
				t.Errorf("number %d of %d is %s, want %s of 15", k, len(runs), r.Job, want)
			}
		}
	})
}
