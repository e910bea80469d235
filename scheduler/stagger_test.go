//go:build !race

package scheduler_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// afterOutage lets ten nodes with a thousand jobs lose Redis for five seconds, amid which all jobs come due, and
// counts the answers to claims from when it is back.
func afterOutage(t *testing.T, placement jobs.Placement) (words map[string]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		watch := newClaimWatch(t)
		c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
			client := server.Client()
			client.AddHook(watch)
			return client
		}}
		s := &sink{}
		var list []jobs.Job
		for i := range 1000 {
			j := eachSecond(fmt.Sprintf("job-%03d", i), s)
			j.Schedule, j.Placement = "*/10 * * * * *", placement
			list = append(list, j)
		}
		for i := range 10 {
			c.start(fmt.Sprintf("n%d", i), scheduler.Config{}, list...)
		}
		time.Sleep(17 * time.Second)
		server.Stop()
		time.Sleep(5 * time.Second)
		before := len(s.all())
		watch.take()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		words = watch.take()
		if n := len(s.all()) - before; n != 1000 {
			t.Errorf("%d ticks ran when Redis was back, want those of all 1,000 jobs", n)
		}
		c.end()
		s.check(t)
	})
	return words
}

// When Redis is back, nodes do not all ask for everything that is late: its owner does, and the others in turns.
func TestLateTicksAreTakenInTurns(t *testing.T) {
	turns, atOnce := afterOutage(t, jobs.PlacementOwner), afterOutage(t, jobs.PlacementRace)
	t.Logf("refused claims after 5 s without Redis, 1,000 jobs on 10 nodes: %d in turns, %d where all nodes ask at once\nin turns %v\nat once  %v",
		inVain(turns), inVain(atOnce), turns, atOnce)
	if inVain(atOnce) < 1000 {
		t.Errorf("%d claims were refused where all nodes ask at once: the case is not there", inVain(atOnce))
	}
	if turns[question] > 1000 {
		t.Errorf("%d questions whether a claim was granted: each job's owner has one to ask", turns[question])
	}
	if 50*inVain(turns) > inVain(atOnce) {
		t.Errorf("%d claims were refused, more than a fiftieth of %d, as many as when all nodes ask at once", inVain(turns), inVain(atOnce))
	}
}
