package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// The owner that tools show is the node that runs the job's ticks, though it depends on all jobs.
func TestShownOwnerRunsTheJob(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 40 {
			list = append(list, eachSecond(fmt.Sprintf("job-%d", i), s))
		}
		for i := range 4 {
			c.start(fmt.Sprintf("n%d", i), scheduler.Config{}, list...)
		}
		time.Sleep(20*time.Second + 500*time.Millisecond)
		client := c.client()
		defer client.Close()
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		ran := make(map[string]string) // by whom last
		for _, r := range s.all() {
			ran[r.job] = r.node
		}
		views := must[[]scheduler.JobView](t)(i.Jobs(context.Background()))
		for _, v := range views {
			one := must[scheduler.JobView](t)(i.Job(context.Background(), v.Name))
			if v.Owner != ran[v.Name] || one.Owner != v.Owner {
				t.Errorf("%s: owner %s in the list, %s alone; %s runs it", v.Name, v.Owner, one.Owner, ran[v.Name])
			}
		}
		if len(views) != len(list) {
			t.Errorf("%d jobs, want %d", len(views), len(list))
		}
	})
}
