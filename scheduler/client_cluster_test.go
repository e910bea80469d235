//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops"
)

// The master of the control record ends. A Client with a client of its own finds the new master
// soon after the failover, by the call that fails.
func TestClientFindsAnotherMaster(t *testing.T) {
	m := startReal(t, true)
	must[*ledger.Ledger](t)(ledger.Join(m.ctx, m.Client(t), ledger.Config{Namespace: clusterNamespace, Partitions: clusterPartitions}))
	job, _ := m.jobAt("job", func(s *redistest.Server) bool { return s == m.away })
	calls := map[string]func(ctx context.Context, i *ops.Client) error{
		"Drains": func(ctx context.Context, i *ops.Client) error { return second(i.Drains(ctx)) },
		"Jobs":   func(ctx context.Context, i *ops.Client) error { return second(i.ListJobs(ctx, ops.JobFilter{})) },
		"Trigger": func(ctx context.Context, i *ops.Client) error {
			if _, err := i.Trigger(ctx, job, ops.TriggerOptions{}); !errors.Is(err, ops.ErrUnknownJob) {
				return err
			}
			return nil
		},
	}
	clients := make(map[string]*ops.Client)
	for name, call := range calls {
		clients[name] = must[*ops.Client](t)(ops.New(m.Client(t), clusterNamespace))
		if err := call(m.ctx, clients[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.away.Kill(); err != nil {
		t.Fatal(err)
	}
	must[*redistest.Server](t)(m.Promoted(m.ctx, controlKey, m.away))
	for name, call := range calls {
		for err := call(m.ctx, clients[name]); err != nil; err = call(m.ctx, clients[name]) {
			m.until(time.Now().Add(50*time.Millisecond), fmt.Sprintf("%s, with another master in place: %v", name, err))
		}
	}
}

// An operator's tools reach all masters of a Cluster but one. Reads return the reachable masters'
// records and name the missing part; jobs of the reachable masters can be operated.
func TestToolsWithoutAMaster(t *testing.T) { virtually(t, false, toolsWithoutAMaster) }

func toolsWithoutAMaster(m *virtualMasters) {
	t, s := m.t, &sink{}
	elsewhere, there := m.job("elsewhere", false, s.note), m.job("there", true, s.note)
	started, ended := make(chan time.Time, 9), make(chan error, 9)
	long := m.job("long", false, lasting(forever, started, ended).Func)
	m.run(m.client(), scheduler.Config{Name: "n1", FailoverHold: time.Second}, elsewhere, there, long)
	m.ran("a run", elsewhere, s, time.Time{})
	m.ran("a run there", there, s, time.Time{})
	next(m.ctx, t, "a run that goes on", started)

	ctx := m.ctx
	var r roads
	in := must[*ops.Client](t)(ops.New(m.over(&r), clusterNamespace))
	run := must[ops.Page[ops.RunView]](t)(in.ListRuns(ctx, ops.RunFilter{Job: long.Name, Outcome: "running"})).Items[0].Run // a tick that was skipped for it has none
	r.away.Cut()
	left := func(what string, err error, names ...string) {
		t.Helper()
		var unheard *ops.UnreachableError
		if !errors.As(err, &unheard) || !errors.Is(err, locking.ErrUnreachable) || len(unheard.Parts) == 0 {
			t.Errorf("%s: %v; want an UnreachableError", what, err)
		}
		shown := make(map[string]bool)
		for _, n := range names {
			shown[n] = true
		}
		if !shown[elsewhere.Name] && !shown["n1"] || shown[there.Name] {
			t.Errorf("%s: shows %v", what, shown)
		}
	}
	began := time.Now()
	var names []string
	views, err := in.ListJobs(ctx, ops.JobFilter{})
	for _, j := range views.Items {
		names = append(names, j.Name)
	}
	left("jobs", err, names...)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a list took %s", took)
	}
	names = nil
	list, err := in.ListRuns(ctx, ops.RunFilter{})
	for _, r := range list.Items {
		names = append(names, r.Job)
	}
	left("runs", err, names...)
	if nodes, err := in.ListNodes(ctx); err != nil || len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
	one, err := in.GetJob(ctx, elsewhere.Name)
	left("one job", err, one.Name)
	if _, err := in.GetJob(ctx, there.Name); !errors.Is(err, locking.ErrUnreachable) || errors.As(err, new(*ops.UnreachableError)) {
		t.Errorf("a job there: %v", err)
	}
	if _, err := in.GetRun(ctx, "nobody's"); !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, ops.ErrUnknownRun) {
		t.Errorf("a run that may be there: %v", err)
	}

	if err := in.Pause(ctx, long.Name, ops.PauseOptions{Reason: "a test"}); err != nil {
		t.Error("pause:", err)
	}
	if word, err := in.Cancel(ctx, run, ops.CancelOptions{}); err != nil || word != ops.CancelTold {
		t.Errorf("cancel: %q, %v", word, err)
	}
	if v, err := in.WaitRun(ctx, run); err != nil || v.Outcome != jobs.OutcomeCancelled {
		t.Errorf("the cancelled run: %q, %v", v.Outcome, err)
	}
	again := must[string](t)(in.Rerun(ctx, run))
	must[ops.Cancellation](t)(in.Cancel(ctx, again, ops.CancelOptions{}))
	if err := errors.Join(in.DrainNode(ctx, "n1", ops.DrainOptions{}), in.ResumeNode(ctx, "n1")); err != nil {
		t.Error("drain and resume:", err)
	}
}
