package scheduler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// report is a handler that writes its runs, with their payloads, to a sink.
func report(s *sink) map[string]jobs.Func {
	return map[string]jobs.Func{"report": func(_ context.Context, r *jobs.Run) error {
		fmt.Fprintf(r.Output(), "payload %s", r.Payload())
		s.write(r)
		return nil
	}}
}

// tenant is a stored job of a tenant, each second.
func tenant(n int) jobs.Job {
	return jobs.Job{
		Name: fmt.Sprint("tenant-", n), Schedule: "* * * * * *", TTL: 5 * time.Second, Handler: "report", Payload: []byte(fmt.Sprintf(`{"tenant": %d}`, n)),
	}
}

// A job that is stored while nodes run is run by the nodes that have its handler, is changed and
// deleted within a second, and outlives all nodes.
func TestStoredJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		a, b := c.start("a", scheduler.Config{}), c.start("b", scheduler.Config{})
		c.handlers = nil
		c.start("other", scheduler.Config{}, eachSecond("code", s))
		time.Sleep(time.Second)
		put := time.Now()
		first := must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{New: true}))
		time.Sleep(5 * time.Second)
		if n := len(s.ticks("tenant-1")); n < 4 || s.ranOn("other", put) > 6 {
			t.Fatalf("%d runs of the stored job in five seconds", n)
		}
		v := c.job("tenant-1")
		if v.Handler != "report" || v.Stored.IsZero() || !v.Stored.Equal(first.Version) || string(v.Payload) != `{"tenant":1}` || v.NoNode != "" {
			t.Errorf("the view: %+v", v)
		}
		done := slices.IndexFunc(c.runs("tenant-1"), func(r ops.RunView) bool { return r.Outcome == jobs.OutcomeSucceeded })
		if r := must[ops.RunView](t)(c.ops().GetRun(t.Context(), c.runs("tenant-1")[done].Run)); r.Output != `payload {"tenant":1}` {
			t.Errorf("a run's output: %q", r.Output)
		}

		// Another schedule. The version that was read decides.
		slow := tenant(1)
		slow.Schedule = "*/10 * * * * *"
		second := must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), slow, ops.PutOptions{Was: first.Version}))
		if _, err := c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{Was: first.Version}); !errors.Is(err, ops.ErrRefused) {
			t.Errorf("the version that was replaced is replaced once more: %v", err)
		}
		time.Sleep(1500 * time.Millisecond)
		changed := time.Now()
		time.Sleep(21 * time.Second)
		if n := s.ranOn("", changed) - len(s.ticks("code")); n > 3 {
			t.Errorf("%d runs within 21 seconds", n)
		}
		if all := must[[]ops.StoredJob](t)(c.ops().StoredJobs(t.Context())); len(all) != 1 || !all[0].Version.Equal(second.Version) || all[0].Schedule != slow.Schedule {
			t.Errorf("stored are %+v", all)
		}

		if n := c.logs.count("jobs have changed\" node=b added=0 changed=1 removed=0 jobs=1 stored=1"); n != 1 { // a replaced job is one change
			t.Errorf("the change is logged %d times", n)
		}

		// Without a node that has the handler its ticks wait, and the next one runs it.
		c.leave(a)
		c.leave(b)
		time.Sleep(time.Second)
		if v := c.job("tenant-1"); v.NoNode == "" {
			t.Errorf("without a handler: %+v", v)
		}
		c.handlers = report(s)
		c.start("late", scheduler.Config{})
		came := time.Now()
		time.Sleep(12 * time.Second)
		if s.ranOn("late", came.Add(-20*time.Second)) == 0 {
			t.Error("the new node does not run it")
		}

		if err := c.ops().Delete(t.Context(), "tenant-1", time.Time{}); err != nil {
			t.Error(err)
		}
		deleted := time.Now()
		time.Sleep(15 * time.Second)
		if n := s.ranOn("late", deleted); n > 0 {
			t.Errorf("%d runs after it was deleted", n)
		}
		if _, err := c.ops().GetJob(t.Context(), "tenant-1"); !errors.Is(err, ops.ErrUnknownJob) {
			t.Errorf("after it was deleted: %v", err)
		}
		c.end()
		s.check(t)
	})
}

// A node that starts is ready when it has the jobs that were stored before, so that a rolling
// deploy goes on only then.
func TestReadyWithStoredJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.handlers = report(&sink{})
		c.start("a", scheduler.Config{})
		time.Sleep(time.Second)
		for i := range 3 {
			must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(i), ops.PutOptions{New: true}))
		}
		time.Sleep(2 * time.Second)
		client := c.client()
		client.AddHook(around{script: "current", before: func() { time.Sleep(1500 * time.Millisecond / partitions) }})
		b := c.startOver(client, "b", scheduler.Config{})
		time.Sleep(400 * time.Millisecond)
		if err := b.Ready(); err == nil || !strings.Contains(err.Error(), "stored jobs are not registered yet") {
			t.Errorf("before the stored jobs are registered: %v", err)
		}
		time.Sleep(5 * time.Second)
		if err := b.Ready(); err != nil {
			t.Errorf("with all of them: %v", err)
		}
	})
}

// A job is deleted in the version that it was read in, or not at all.
func TestStoredJobsAreDeletedAsRead(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.handlers = report(&sink{})
		c.start("a", scheduler.Config{})
		time.Sleep(time.Second)
		read := must[[]ops.StoredJob](t)(c.ops().PutJobs(t.Context(), []jobs.Job{tenant(1), tenant(2)}, ops.PutOptions{}))
		other := tenant(1)
		other.ManagedBy = "somebody-else"
		must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), other, ops.PutOptions{}))
		deleted, err := c.ops().DeleteJobs(t.Context(), read)
		if !errors.Is(err, ops.ErrRefused) || !strings.Contains(err.Error(), "tenant-1") || !slices.Equal(deleted, []string{"tenant-2"}) {
			t.Errorf("deleted are %v: %v", deleted, err)
		}
		left := must[[]ops.StoredJob](t)(c.ops().StoredJobs(t.Context()))
		if len(left) != 1 || left[0].ManagedBy != "somebody-else" {
			t.Errorf("left are %+v", left)
		}
		deleted = must[[]string](t)(c.ops().DeleteJobs(t.Context(), left))
		if len(deleted) != 1 {
			t.Errorf("then %v", deleted)
		}
	})
}

// Redis comes back empty: stored jobs go on, and deleted ones stay deleted.
func TestStoredJobsOutliveRedis(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		for _, name := range []string{"a", "b"} {
			c.start(name, scheduler.Config{})
		}
		time.Sleep(time.Second)
		must[[]ops.StoredJob](t)(c.ops().PutJobs(t.Context(), []jobs.Job{tenant(1), tenant(2), tenant(3)}, ops.PutOptions{}))
		time.Sleep(3 * time.Second)
		if err := c.ops().Delete(t.Context(), "tenant-2", time.Time{}); err != nil {
			t.Fatal(err)
		}
		client := server.Client()
		defer client.Close()
		must[string](t)(client.FlushAll(t.Context()).Result())
		time.Sleep(8 * time.Second)
		back := time.Now()
		time.Sleep(5 * time.Second)
		if all := must[[]ops.StoredJob](t)(c.ops().StoredJobs(t.Context())); len(all) != 2 || all[0].Name != "tenant-1" || all[1].Name != "tenant-3" {
			t.Errorf("stored are %+v", all)
		}
		for _, name := range []string{"tenant-1", "tenant-3"} {
			n := 0
			for _, tick := range s.ticks(name) {
				if tick.After(back) {
					n++
				}
			}
			if n < 4 {
				t.Errorf("%s ran %d times in five seconds", name, n)
			}
		}
	})
}

// An invalid job is refused with field and cure, and nothing is stored.
func TestStoredJobsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		c.start("a", scheduler.Config{}, eachSecond("code", s))
		time.Sleep(2 * time.Second)
		refused(t, second(c.ops().PutJobs(t.Context(), []jobs.Job{tenant(1), {Name: "code", Handler: "report", Schedule: "@daily"}}, ops.PutOptions{})),
			ops.ErrRefused, "a program has registered a job of that name")
		// All faults of a job are returned at once, each setting's once.
		all := tenant(2)
		all.Handler, all.Payload, all.Func, all.Only, all.Overlap, all.TTL = "", []byte("{"), eachSecond("x", s).Func, []string{"holidays", "2026-02-30"}, 9, time.Second
		_, err := c.ops().PutJob(t.Context(), all, ops.PutOptions{})
		var at []string
		for _, f := range ops.FaultsOf(err) {
			at = append(at, f.Field)
		}
		if want := []string{"handler", "func", "only[0]", "only[1]", "overlap", "ttl", "payload"}; !slices.Equal(at, want) {
			t.Errorf("faults of %q, want %q: %v", at, want, err)
		}
		if all := must[[]ops.StoredJob](t)(c.ops().StoredJobs(t.Context())); len(all) > 0 {
			t.Errorf("stored are %+v", all)
		}
		if err := second(c.ops().DeleteJobs(t.Context(), []ops.StoredJob{{Job: jobs.Job{Name: "code"}}})); !errors.Is(err, ops.ErrRefused) || !strings.Contains(err.Error(), "delete job code: held by") {
			t.Errorf("a program's job is deleted: %v", err)
		}
	})
}

// storedSeeds is how many times TestStoredJobsChange is played: go test ./scheduler -run
// TestStoredJobsChange -stored.seeds 1000.
var (
	storedSeeds = flag.Uint64("stored.seeds", 2, "how many seeds TestStoredJobsChange plays")
	storedFirst = flag.Uint64("stored.first", 0, "the first of them")
)

// Stored jobs are put, changed and deleted at random while nodes come and go, die, and come back
// from the dead. No tick runs twice, the books close, and the jobs that are left run.
func TestStoredJobsChange(t *testing.T) {
	for seed := *storedFirst; seed < *storedFirst+*storedSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				w := &storedWorld{t: t, c: c, server: server, rng: rand.New(rand.NewPCG(seed, 26)), s: &sink{}, left: make(map[string]bool), gone: make(map[string]bool)}
				c.handlers = report(w.s)
				for i := range w.nodes {
					w.start(i)
				}
				time.Sleep(time.Second)
				for range 60 {
					w.step()
					time.Sleep(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
				}
				for _, n := range w.cut {
					n.Heal()
				}
				time.Sleep(10 * time.Second)
				now := time.Now()
				time.Sleep(8 * time.Second)
				ran := make(map[string]bool)
				for _, r := range w.s.all() {
					ran[r.job] = ran[r.job] || r.at.After(now)
				}
				for name := range w.left {
					if !ran[name] {
						t.Errorf("%s does not run", name)
					}
				}
				for name := range w.gone {
					if _, err := c.ops().GetJob(t.Context(), name); !errors.Is(err, ops.ErrUnknownJob) {
						t.Errorf("%s, which was deleted: %v", name, err)
					}
				}
				c.end()
				if w.s.check(t); t.Failed() {
					t.Logf("the same again: -stored.first %d -stored.seeds 1", seed)
				}
			})
		})
	}
}

// storedWorld is a cluster in which stored jobs change.
type storedWorld struct {
	t      *testing.T
	c      *cluster
	server *redistest.Embedded
	rng    *rand.Rand
	s      *sink

	nodes   [3]*running
	network [3]*redistest.Net
	cut     []*redistest.Net // of nodes that died
	started int
	left    map[string]bool // the jobs that are stored
	gone    map[string]bool // jobs that were deleted with their history
}

// start starts a node in one of the places.
func (w *storedWorld) start(i int) {
	w.network[i] = new(redistest.Net)
	w.started++
	cfg := scheduler.Config{DrainTimeout: time.Second}
	w.nodes[i] = w.c.startOver(w.network[i].Client(w.server.Options()), fmt.Sprint("n", i, "-", w.started), cfg)
}

func (w *storedWorld) step() {
	i, j := w.rng.IntN(len(w.nodes)), tenant(w.rng.IntN(6))
	switch w.rng.IntN(12) {
	case 0: // one leaves
		w.c.leave(w.nodes[i])
		w.start(i)
	case 1: // one dies, and comes back when all is over
		if len(w.cut) < 4 {
			w.network[i].Cut()
			w.cut = append(w.cut, w.network[i])
			w.start(i)
		}
	case 2, 3:
		if !w.left[j.Name] {
			return
		}
		w.remove(j.Name)
	case 4: // before all nodes have registered it
		w.put(j)
		time.Sleep(time.Duration(w.rng.IntN(600)) * time.Millisecond)
		w.remove(j.Name)
	default:
		j.Schedule = []string{"* * * * * *", "*/2 * * * * *", "@every 3s"}[w.rng.IntN(3)]
		j.Shards = 1 + w.rng.IntN(2)
		w.put(j)
	}
}

func (w *storedWorld) put(j jobs.Job) {
	if _, err := w.c.ops().PutJob(w.t.Context(), j, ops.PutOptions{}); err != nil {
		w.t.Errorf("put %s: %v", j.Name, err)
	}
	w.left[j.Name] = true
	delete(w.gone, j.Name)
}

// remove deletes a job. It is refused while a run of it is in flight, or a dead node holds it: then
// its history stays, and the name may be taken anew.
func (w *storedWorld) remove(name string) {
	err := w.c.ops().Delete(w.t.Context(), name, time.Time{})
	if err == nil {
		w.gone[name] = true
	} else if !errors.Is(err, ops.ErrRefused) {
		w.t.Errorf("delete %s: %v", name, err)
	}
	delete(w.left, name)
}

// A put of an unchanged job changes nothing: no version, no row in the history, and one note in the
// audit for the call.
func TestPutOfTheSame(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		c.start("a", scheduler.Config{})
		time.Sleep(time.Second)
		in := c.ops().As(ops.Actor{Name: "ann", Via: "cli"})
		first := must[ops.StoredJob](t)(in.PutJob(t.Context(), tenant(1), ops.PutOptions{}))
		time.Sleep(3500 * time.Millisecond)
		digest := c.job("tenant-1").Stored
		for range 30 {
			if again := must[ops.StoredJob](t)(in.PutJob(t.Context(), tenant(1), ops.PutOptions{Was: first.Version})); !again.Version.Equal(first.Version) {
				t.Fatalf("version %v became %v", first.Version, again.Version)
			}
		}
		both := must[[]ops.StoredJob](t)(in.PutJobs(t.Context(), []jobs.Job{tenant(1), tenant(2)}, ops.PutOptions{}))
		must[[]ops.StoredJob](t)(in.PutJobs(t.Context(), []jobs.Job{tenant(1), tenant(2)}, ops.PutOptions{}))
		time.Sleep(2 * time.Second)
		if v := c.job("tenant-1"); !v.Stored.Equal(digest) || v.LastSuccess.IsZero() {
			t.Errorf("the view: %+v", v)
		}
		for _, r := range c.runs("tenant-1") {
			if r.Outcome == jobs.OutcomeSuperseded {
				t.Errorf("a row: %+v", r)
			}
		}
		if !both[0].Version.Equal(first.Version) || both[1].Version.Equal(first.Version) {
			t.Errorf("versions %v and %v", both[0].Version, both[1].Version)
		}
		var notes []string
		for _, a := range must[ops.Page[ops.ActionView]](t)(in.Audit(t.Context(), ops.ActionFilter{Limit: 3})).Items {
			notes = append(notes, a.Target+" "+a.Detail)
		}
		if want := []string{"tenant-1 unchanged, and 1 more", "tenant-2 * * * * * *", "tenant-1 unchanged"}; !slices.Equal(notes, want) {
			t.Errorf("the audit has %q, want %q", notes, want)
		}
	})
}
