//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// One master of a Cluster ends after granting a tick that no replica has received. The nodes read
// the clock of another master. The tick is running and must not run again. The ticks after it do
// not wait for FailoverHold, because both nodes have reported their runs.
func TestRunIsAssertedToAnotherMaster(t *testing.T) {
	m, s := startReal(t, false), &sink{}
	held, end, long := make(chan struct{}), make(chan struct{}), make(chan *jobs.Run, 100) // from the first on runs last until the second
	j := m.job("job", true, func(ctx context.Context, r *jobs.Run) error {
		s.write(r)
		select {
		case <-held:
		default:
			return nil
		}
		long <- r
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return nil
		}
	})
	j.TTL = time.Minute // however long it takes until there is another master
	for _, name := range []string{"n1", "n2"} {
		m.run(m.Client(t), scheduler.Config{Name: name, FailoverHold: time.Minute}, j)
	}
	m.ran("the first run", j, s, time.Time{})
	if err := m.Part(m.ctx, m.away); err != nil {
		t.Fatal(err)
	}
	close(held)
	run := next(m.ctx, t, "a run that only its master knows", long)
	admin := must[*ops.Client](t)(ops.New(m.Client(t), clusterNamespace))
	// leased waits until the master has a lease of the run that lasts for so long at least.
	leased := func(left time.Duration, otherwise string) {
		for known := false; !known; m.until(time.Now().Add(20*time.Millisecond), otherwise) {
			call, cancel := context.WithTimeout(m.ctx, time.Second)
			lease, _ := admin.GetLock(call, j.Name)
			cancel()
			known = lease.Run == run.ID() && lease.TTL > left
		}
	}
	leased(10*time.Second, "the run was not renewed: its lease is short until it is")
	if err := m.away.Kill(); err != nil {
		t.Fatal(err)
	}
	must[*redistest.Server](t)(m.Promoted(m.ctx, partitionKey(j.Name, "jobs"), m.away))
	leased(0, "the new master has not been told of the run")
	close(end)
	for next(m.ctx, t, "a run after it", long).Tick().Sub(run.Tick()) < 3*time.Second {
		continue
	}
	starts := make(map[time.Time]int)
	for _, r := range s.all() {
		if starts[r.tick]++; starts[r.tick] > 1 {
			t.Errorf("tick %s was run again", r.tick)
		}
	}
	if view, err := admin.GetRun(m.ctx, run.ID()); err != nil || view.Outcome != jobs.OutcomeSucceeded {
		t.Errorf("the run that was told: %+v, %v", view, err)
	}
}

// move promotes another server to master of a job's partition, with a copy of all records; never
// the server that is away.
func (m *virtualMasters) move(j jobs.Job) {
	m.t.Helper()
	key := partitionKey(j.Name, "jobs")
	from := m.master(key)
	_, to := m.jobAt("to", func(s *redistest.Embedded) bool { return s != from && s != m.away })
	m.MoveSlot(key, to)
}

// A partition of a Cluster gets another master, while a node that may have runs there is
// unreachable. The partition's job waits for that node during FailoverHold; other jobs do not.
func TestReplacedMasterHoldsItsOwn(t *testing.T) { virtually(t, false, replacedMasterHoldsItsOwn) }

func replacedMasterHoldsItsOwn(m *virtualMasters) {
	const hold = 5 * time.Second
	t, s, moves := m.t, &sink{}, &sink{}
	elsewhere, there := m.jobs(8, "elsewhere", false, s.note), m.job("there", true, moves.note)
	var n1, n2 roads
	for name, r := range map[string]*roads{"n1": &n1, "n2": &n2} {
		cfg := scheduler.Config{Name: name, FailoverHold: hold, ClaimAhead: -1} // grants made ahead begin all the same
		m.run(m.over(r), cfg, append(elsewhere, there)...)
	}
	cut := m.until(time.Now().Add(4 * time.Second).Truncate(time.Second).Add(stint))
	n2.away.Cut()
	n2.others.Cut()
	m.move(there)
	moved := time.Now()
	m.ran("a run of the partition that moved", there, moves, moved)
	if held := time.Since(moved); held < hold-2*time.Second {
		t.Errorf("a run began %s after its partition had another master; the node that says nothing is to be waited for %s", held, hold)
	}
	if latest := s.each(t, elsewhere, cut.Add(time.Second), time.Now().Add(-2*time.Second)); latest > 3*time.Second {
		t.Errorf("a run elsewhere started %s late", latest)
	}
}

// A partition gets another master while an old master, with many runs of the node, is slow. The old
// master has lost nothing, so no job waits for reports to the old master.
func TestReplacedMasterIsNoticedAtOnce(t *testing.T) {
	virtually(t, false, replacedMasterIsNoticedAtOnce)
}

func replacedMasterIsNoticedAtOnce(m *virtualMasters) {
	t, s := m.t, &sink{}
	moves := m.job("moves", false, s.note)
	var r roads
	client := m.over(&r)
	slow := m.jobs(60, "slow", true, func(context.Context, *jobs.Run) error { return nil })
	m.run(client, scheduler.Config{Name: "n1", FailoverHold: 20 * time.Second}, append(slow, moves)...)
	m.ran("a run of the partition that is going to move", moves, s, time.Time{})
	m.until(time.Now().Add(4 * time.Second)) // some two hundred ends
	r.away.Delay(300 * time.Millisecond)
	m.move(moves)
	moved := time.Now()
	m.ran("a tick of the partition that moved", moves, s, moved)
	if held := time.Since(moved); held > 4*time.Second {
		t.Errorf("its first tick was run %s after it had another master", held)
	}
}

// One master of a Cluster comes back without its data, as its empty replica. The ticks of the jobs
// that it had are made up for, each once.
func TestEmptiedMaster(t *testing.T) {
	m, s, others := startReal(t, false), &sink{}, &sink{}
	there, elsewhere := m.job("there", true, s.note), m.job("elsewhere", false, others.note)
	there.CatchUp, there.CatchUpMax, there.Overlap = jobs.CatchUpAll, 100, jobs.OverlapAllow // nothing but the loss costs a tick
	for _, name := range []string{"n1", "n2"} {
		m.run(m.Client(t), scheduler.Config{Name: name}, there, elsewhere)
	}
	m.ran("a run of the master that loses its data", there, s, time.Time{})
	m.until(time.Now().Add(3 * time.Second))
	if err := m.away.Client(t).FlushAll(m.ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := m.away.Kill(); err != nil {
		t.Fatal(err)
	}
	must[*redistest.Server](t)(m.Promoted(m.ctx, partitionKey(there.Name, "jobs"), m.away))
	m.ran("a run at the new master", there, s, time.Now().Add(3*time.Second))
	starts, first, last := make(map[time.Time]int), time.Time{}, time.Time{}
	for _, r := range s.all() {
		starts[r.tick]++
		if first.IsZero() || r.tick.Before(first) {
			first = r.tick
		}
		if r.tick.After(last) {
			last = r.tick
		}
	}
	for at := first; at.Before(last); at = at.Add(time.Second) {
		if starts[at] != 1 {
			t.Errorf("tick %s was run %d times", at, starts[at])
		}
	}
	if t.Failed() {
		client := must[*ops.Client](t)(ops.New(m.Client(t), clusterNamespace))
		rows, err := client.ListRuns(m.ctx, ops.RunFilter{Job: there.Name})
		for _, r := range rows.Items {
			t.Logf("%s..%v x%d %s %s started %v ended %v run %s", r.Tick, r.Until, r.Count, r.Outcome, r.Reason, r.Started, r.Ended, r.Run)
		}
		t.Log(err)
	}
}

// A partition loses its gate and its incarnation while another master hangs. The partition's jobs
// go on, unless the hanging master has the control record: only the control record shows that no
// move has closed the namespace. The master's other jobs go on in any case.
func TestLossBesideASilentMaster(t *testing.T) {
	for name, home := range map[string]bool{"of the control record": true, "of others": false} {
		t.Run(name, func(t *testing.T) {
			virtually(t, home, func(m *virtualMasters) { lossBesideASilentMaster(m, home) })
		})
	}
}

func lossBesideASilentMaster(m *virtualMasters, home bool) {
	lossAt := m.jobs(1, "lossy", false, nil)[0]
	if of := m.master(controlKey); !home {
		lossAt.Name, _ = m.jobAt("lossy", func(s *redistest.Embedded) bool { return s != m.away && s != of })
	}
	of := m.master(partitionKey(lossAt.Name, "jobs"))
	beside := jobs.Job{Schedule: lossAt.Schedule}
	for i := 0; beside.Name == "" || partitionKey(beside.Name, "") == partitionKey(lossAt.Name, ""); i++ {
		beside.Name, _ = m.jobAt(fmt.Sprint("beside-", i), func(s *redistest.Embedded) bool { return s == of })
	}
	s, said := &sink{}, &logs{}
	lossAt.Func, beside.Func = s.note, s.note
	var n1 roads
	log := slog.New(slog.NewTextHandler(io.Writer(said), nil))
	m.run(m.over(&n1), scheduler.Config{Name: "n1", FailoverHold: 3 * time.Second, Logger: log}, lossAt, beside)
	m.ran("a run", lossAt, s, time.Time{})
	n1.away.Cut()
	m.until(time.Now().Add(5 * time.Second))
	lost := time.Now()
	if err := m.client().Del(m.ctx, partitionKey(lossAt.Name, "gate"), partitionKey(lossAt.Name, "incarnation")).Err(); err != nil {
		m.t.Fatal(err)
	}
	end := m.until(lost.Add(20 * time.Second))
	if latest := s.each(m.t, []jobs.Job{beside}, lost.Add(-2*time.Second), end.Add(-2*time.Second)); latest > time.Second {
		m.t.Errorf("a run of another partition of the master started %s late", latest)
	}
	if n := said.count("all others go on\" node=n1 master=" + of.Addr()); n > 0 {
		m.t.Errorf("%d times the master that answers is named as one that does not: %s", n, said)
	}
	if home {
		n1.away.Heal()
	}
	m.ran("a run of the partition that lost records", lossAt, s, lost.Add(15*time.Second))
}
