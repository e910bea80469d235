//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

// TestToolsWithoutAMaster: an operator whose tools reach all masters of a Cluster but one sees what the others have, is told what is
// left out, and can operate what lives at the others.
func TestToolsWithoutAMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, false)
	ran, note := noting()
	reg, elsewhere, there := a.two(ctx, t, note)
	going, goes := make(chan string, 1), a.name(ctx, t, "goes-on", false)
	reg.MustAdd(jobs.Job{Name: goes, Schedule: "@every 1s", Func: func(ctx context.Context, run *jobs.Run) error {
		select {
		case going <- run.ID():
		default:
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	runOnCluster(t, a.cluster.Client(t), reg, "n1", time.Second)
	awaitRun(ctx, t, "a run", elsewhere, ran)
	awaitRun(ctx, t, "a run there", there, ran)
	run := next(ctx, t, "a run that goes on", going)

	var road roads
	in, err := scheduler.NewInspector(road.client(t, a.cluster, a.away), twoMasters)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := in.Jobs(ctx)
	if err != nil || len(whole) != 3 {
		t.Fatalf("%d jobs, %v", len(whole), err)
	}
	road.away.Cut()
	left := func(what string, err error, shown int, at map[string]bool) {
		t.Helper()
		var unheard *scheduler.UnheardError
		if !errors.As(err, &unheard) || !errors.Is(err, locking.ErrUnreachable) || len(unheard.Parts) == 0 {
			t.Errorf("%s: %v; want an UnheardError", what, err)
		}
		if shown == 0 || !at[elsewhere] && !at["n1"] || at[there] {
			t.Errorf("%s: shows %v", what, at)
		}
	}

	began := time.Now()
	some, err := in.Jobs(ctx)
	shown := make(map[string]bool)
	for _, j := range some {
		shown[j.Name] = true
	}
	left("jobs", err, len(some), shown)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a list took %s", took)
	}

	list, err := in.List(ctx, scheduler.RunFilter{})
	clear(shown)
	for _, r := range list.Runs {
		shown[r.Job] = true
	}
	left("runs", err, len(list.Runs), shown)
	if list, err := in.List(ctx, scheduler.RunFilter{Job: elsewhere}); err != nil || len(list.Runs) == 0 {
		t.Errorf("runs of one job: %d, %v", len(list.Runs), err)
	}

	nodes, err := in.Nodes(ctx)
	clear(shown)
	for _, n := range nodes {
		shown[n.Name] = true
	}
	left("nodes", err, len(nodes), shown)

	one, err := in.Job(ctx, elsewhere)
	left("one job", err, 1, map[string]bool{one.Name: true})
	if _, err := in.Job(ctx, there); !errors.Is(err, locking.ErrUnreachable) || errors.As(err, new(*scheduler.UnheardError)) {
		t.Errorf("a job there: %v", err)
	}
	if _, err := in.Run(ctx, "nobody's"); !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, scheduler.ErrUnknownRun) {
		t.Errorf("a run that may be there: %v", err)
	}
	if v, err := in.Run(ctx, run); err != nil || v.Job != goes {
		t.Errorf("a run elsewhere: %q, %v", v.Job, err)
	}

	operateElsewhere(ctx, t, in, goes, run)
}

// operateElsewhere does what an operator may do with a job, a run of it, and its node.
func operateElsewhere(ctx context.Context, t *testing.T, in *scheduler.Inspector, job, run string) {
	t.Helper()
	if err := in.Pause(ctx, job, scheduler.PauseOptions{Reason: "a test"}); err != nil {
		t.Error("pause:", err)
	}
	if word, err := in.Cancel(ctx, run, scheduler.CancelOptions{}); err != nil || word != scheduler.CancelTold {
		t.Errorf("cancel: %q, %v", word, err)
	}
	if v, err := in.Wait(ctx, run); err != nil || v.Outcome != jobs.OutcomeCancelled.String() {
		t.Errorf("the cancelled run: %q, %v", v.Outcome, err)
	}
	again, err := in.Rerun(ctx, run)
	if err != nil {
		t.Error("rerun:", err)
	}
	if _, err := in.Cancel(ctx, again, scheduler.CancelOptions{}); err != nil {
		t.Error("cancel the second attempt:", err)
	}
	if err := in.DrainNode(ctx, "n1", scheduler.DrainOptions{}); err != nil {
		t.Error("drain:", err)
	}
	if err := in.ResumeNode(ctx, "n1"); err != nil {
		t.Error("resume:", err)
	}
}
