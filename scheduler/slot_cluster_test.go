//go:build unix

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// A slot is on its way to another master for some seconds, and its partition's jobs wait. Other
// partitions' jobs at the same master go on.
func TestSlotOnItsWay(t *testing.T) { virtually(t, false, slotOnItsWay) }

func slotOnItsWay(m *virtualMasters) {
	t, s := m.t, &sink{}
	moving := m.job("moving", true, s.note)
	part := ledger.Partition(moving.Name, clusterPartitions)
	var others []jobs.Job
	for i := 0; len(others) < 8; i++ {
		if j := m.job(fmt.Sprint("stays-", i), true, s.note); ledger.Partition(j.Name, clusterPartitions) != part {
			others = append(others, j)
		}
	}
	m.run(m.client(), scheduler.Config{Name: "n1", FailoverHold: time.Second}, append(others, moving)...)
	m.ran("before the slot moves", moving, s, time.Time{})
	_, to := m.jobAt("any", func(master *redistest.Embedded) bool { return master != m.away })
	key := partitionKey(moving.Name, "jobs")
	m.until(time.Now().Add(3 * time.Second))
	m.OpenSlot(key)
	opened := time.Now()
	over := m.until(opened.Add(6 * time.Second))
	for _, at := range s.ticks(moving.Name) {
		if at.After(opened.Add(time.Second)) {
			t.Errorf("the job whose slot is on its way since %s ran at %s: there is nothing to be seen", opened, at)
		}
	}
	if latest := s.each(t, others, opened, over.Add(-time.Second)); latest > time.Second {
		t.Errorf("a run of another partition started %s late", latest)
	}
	m.MoveSlot(key, to)
	m.ran("the slot has moved", moving, s, time.Now())
}
