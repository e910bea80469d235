package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A node counts its jobs by the reason that keeps it from claiming them: another generation's,
// another definition, labels that no node has.
func TestStatsOfJobs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		labelled := eachSecond("labelled", s)
		labelled.Labels = map[string]string{"disk": "fast"}
		want := func(n *running, want scheduler.JobStates) {
			t.Helper()
			if got := n.Stats().Jobs; got != want {
				t.Errorf("%s: %+v, want %+v", n.Name(), got, want)
			}
		}
		old := c.start("old", scheduler.Config{Revision: "1"}, eachSecond("job", s), labelled)
		time.Sleep(15 * time.Second)
		want(old, scheduler.JobStates{All: 2, Owned: 1, NoNode: 1})
		if st := old.Stats(); st.Claims["granted"] < 10 || st.LeasesLost != 0 || len(st.Masters) != 1 || st.Masters[0] != (scheduler.MasterStats{Addr: server.Client().Options().Addr, Up: true}) {
			t.Errorf("%+v", st)
		}
		newer := eachSecond("job", s)
		newer.Timeout = time.Minute
		c.start("new", scheduler.Config{Revision: "2"}, newer)
		standby := c.start("standby", scheduler.Config{Generation: "next"}, eachSecond("job", s))
		time.Sleep(8 * time.Second)
		want(old, scheduler.JobStates{All: 2, Owned: 1, Superseded: 1, NoNode: 1})
		want(standby, scheduler.JobStates{All: 1, Owned: 1, Standby: 1})
		if err := old.Remove("job"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		want(old, scheduler.JobStates{All: 1, NoNode: 1})
	})
}

func TestStatsBeforeRun(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	reg := jobs.NewRegistry()
	reg.MustAdd(eachSecond("job", &sink{}))
	n, err := scheduler.New(client, reg, scheduler.Config{Name: "a", MaxRunning: 3})
	if err != nil {
		t.Fatal(err)
	}
	if s := n.Stats(); s.Slots != 3 || s.SlotsUsed != 0 || s.Jobs != (scheduler.JobStates{All: 1, Unregistered: 1}) || s.Masters != nil {
		t.Errorf("%+v", s)
	}
}
