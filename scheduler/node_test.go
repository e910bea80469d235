package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// Four nodes run each tick of forty jobs once and on time. The owner that tools show runs the job,
// and no node owns more than its share and 15 %.
func TestNodesShareTheJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		list := many(40, s)
		for i := range 4 {
			c.start(fmt.Sprint("n", i), scheduler.Config{}, list...)
		}
		time.Sleep(5 * time.Second)
		from := time.Now()
		time.Sleep(15*time.Second + 500*time.Millisecond)
		if latest := s.each(t, list, from, time.Now()); latest > 100*time.Millisecond {
			t.Errorf("a tick started %s late", latest)
		}
		ran := make(map[string]string) // by whom last
		for _, r := range s.all() {
			ran[r.job] = r.node
		}
		views := must[ops.Page[ops.JobView]](t)(c.ops().ListJobs(t.Context(), ops.JobFilter{})).Items
		for _, v := range views {
			if one := c.job(v.Name); v.Owner != ran[v.Name] || one.Owner != v.Owner {
				t.Errorf("%s: owner %s in the list, %s alone; %s runs it", v.Name, v.Owner, one.Owner, ran[v.Name])
			}
		}
		if len(views) != len(list) {
			t.Errorf("%d jobs, want %d", len(views), len(list))
		}
		for i := range 4 {
			if v := c.node(fmt.Sprint("n", i)); v.Owned == 0 || v.Owned > 12 {
				t.Errorf("%s owns %d of 40 jobs", v.Name, v.Owned)
			}
		}
		c.end()
		s.check(t)
	})
}

// The error of Ready names what keeps a waiting node from registering.
func TestNotReadySaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		network := &redistest.Net{}
		network.Cut()
		s := &sink{}
		n := c.startOver(network.Client(server.Options()), "early", scheduler.Config{WaitForRedis: true}, eachSecond("a", s))
		time.Sleep(20 * time.Second)
		if err := n.Ready(); !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "not registered yet") {
			t.Errorf("without Redis: %v", err)
		}
		network.Heal()
		time.Sleep(20 * time.Second)
		if err := n.Ready(); err != nil || len(s.all()) == 0 {
			t.Errorf("with Redis: %v, %d runs", err, len(s.all()))
		}
	})
}

// Two nodes with one name make the records ambiguous: each node logs a warning, once.
func TestSameNameIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		for _, name := range []string{"same", "same", "other"} {
			c.start(name, scheduler.Config{}, eachSecond("job", &sink{}))
		}
		time.Sleep(30 * time.Second)
		if n := c.logs.count("another node has the same name"); n != 2 {
			t.Errorf("said %d times, want once by each of the two", n)
		}
	})
}

// A node and all its runs have ids of the maker that it was given, and no id is drawn that is not
// used.
func TestIDsComeFromOneMaker(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		var drawn atomic.Int64
		newID := func() string { return fmt.Sprintf("id-%04d", drawn.Add(1)) }
		n := c.start("a", withIDs(newID), eachSecond("one", &sink{}), eachSecond("two", &sink{}))
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

// A node whose user may not call INFO notices no restart of Redis, and logs a warning once when it
// starts.
func TestUserWithoutInfo(t *testing.T) {
	const words = "ACL SETUSER NAME +info"
	server := redistest.Start(t)
	if err := server.Client(t).Do(t.Context(), "acl", "setuser", "poor", "on", ">hunter2", "~*", "&*", "+@all", "-@dangerous").Err(); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"poor": 1, "": 0} {
		c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
			o := redistest.ClientOptions(server.Addr())
			if user != "" {
				o.Username, o.Password = user, "hunter2"
			}
			return redis.NewClient(o)
		}}
		n := c.start("n", scheduler.Config{}, eachSecond("job", &sink{}))
		for n.Ready() != nil {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-n.done:
				t.Fatal(n.err)
			}
		}
		c.end()
		if got := c.logs.count(words); got != want {
			t.Errorf("user %q: said %d times, want %d\n%s", user, got, want, c.logs.String())
		}
	}
}
