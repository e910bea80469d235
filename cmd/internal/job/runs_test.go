package job

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// claimTick claims a tick of a job and has its run fail, or go on.
func claimTick(p *cmdtest.Planted, job jobs.Job, run string, tick, next int64, outcome jobs.Outcome) {
	p.T.Helper()
	c := ledgertest.Claim{Job: job.Name, Digest: job.Definition().Digest(), Run: run, TTL: time.Hour, From: tick, Tick: tick, Next: next}
	got, err := ledgertest.SendClaims(p.T.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c})
	if err != nil || got[0].Verdict != ledgertest.Granted {
		p.T.Fatal(got, err)
	}
	if outcome != 0 {
		p.End(job.Name, run, outcome, "")
	}
}

// cursorOf is where a job stands, and the tick after that, ms.
func cursorOf(p *cmdtest.Planted, job jobs.Job) (tick, next int64) {
	p.T.Helper()
	s, err := ledgertest.ReadJob(p.T.Context(), p.Ledger, job.Name)
	if err != nil {
		p.T.Fatal(err)
	}
	schedule, err := job.ParsedSchedule()
	if err != nil {
		p.T.Fatal(err)
	}
	return s.Cursor, schedule.Next(time.UnixMilli(s.Cursor)).UnixMilli()
}

// rerunFailing reruns a run as an operator does, and has the attempt fail.
func rerunFailing(p *cmdtest.Planted, job jobs.Job, run string) string {
	p.T.Helper()
	id, err := ledgertest.Rerun(p.T.Context(), p.Ledger, job.Name, run)
	if err != nil {
		p.T.Fatal(err)
	}
	c := ledgertest.Claim{Job: job.Name, Digest: job.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true}
	if got, err := ledgertest.SendClaims(p.T.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c}); err != nil || got[0].Verdict != ledgertest.Granted {
		p.T.Fatal(got, err)
	}
	p.End(job.Name, id, jobs.OutcomeFailed, "")
	return id
}

// The following attempt need not have the next number: after a rewind the tick had further
// attempts.
func TestRerunNamesTheAttemptThatFollows(t *testing.T) {
	job := jobs.Job{Name: "job", Schedule: "* * * * *"}
	p := cmdtest.Plant(t, job)
	tick, next := cursorOf(p, job)
	claimTick(p, job, "r1", tick, next, jobs.OutcomeFailed)
	second := rerunFailing(p, job, "r1")
	rewind := ledgertest.Rewind{Job: job.Name, Digest: job.Definition().Digest(), From: next, To: tick}
	if word, err := ledgertest.RewindJob(t.Context(), p.Ledger, time.Now().UnixMilli(), rewind); err != nil || word != ledgertest.Rewound {
		t.Fatal(word, err)
	}
	claimTick(p, job, "r3", tick, next, jobs.OutcomeFailed)
	fourth := rerunFailing(p, job, second)
	p.Wants(command.ExitRunFailed, second+"\n", "; the attempt after it is "+fourth+"\n", "runs", "rerun", "r1", "--wait")
	p.Wants(command.ExitDone, second+" attempt 2, rerun\n", "", "runs", "list")
	p.Wants(command.ExitDone, "rewound to "+time.UnixMilli(tick).UTC().Format(time.DateTime)+"\n", "", "runs", "list")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	p.Wants(command.ExitDone, "TICK (Europe/Berlin)", "", "runs", "list", "--tz", "Europe/Berlin")
	p.Wants(command.ExitDone, "\n"+time.UnixMilli(tick).In(berlin).Format(time.DateTime)+" ", "", "runs", "list", "--tz", "Europe/Berlin")
}

// handsBack calls f once, before the script that cancels is run.
type handsBack struct{ f func() }

func (handsBack) DialHook(next redis.DialHook) redis.DialHook { return next }
func (handsBack) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h handsBack) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for _, s := range ledgertest.Scripts() {
			if s.Name() == "cancel" && len(cmd.Args()) > 1 && (cmd.Args()[1] == s.Hash() || cmd.Args()[1] == s.Source()) {
				h.f()
			}
		}
		return next(ctx, cmd)
	}
}

// A run of a tick that is handed back while it is cancelled has ended under another id. The command
// succeeds, and shows the run under its current id.
func TestRunsCancelOfARunHandedBack(t *testing.T) {
	job := jobs.Job{Name: "job", Schedule: "* * * * *"}
	p := cmdtest.Plant(t, job)
	for i, output := range []string{"", "json"} {
		run := []string{"r1", "r2"}[i]
		tick, next := cursorOf(p, job)
		claimTick(p, job, run, tick, next, 0)
		client := p.Server.Client(t)
		client.AddHook(handsBack{sync.OnceFunc(func() {
			if got, err := ledgertest.Unclaim(t.Context(), p.Ledger, []ledgertest.Return{{Job: job.Name, Run: run}}); err != nil || got[0] != ledgertest.Returned {
				t.Error(got, err)
			}
		})})
		in, err := ops.New(client, "")
		if err != nil {
			t.Fatal(err)
		}
		var out, words strings.Builder
		a := &command.App{Stdout: &out, Stderr: &words, Flags: command.Flags{Output: output}}
		if err := runsCancel(command.Tool{App: a, Ctx: t.Context(), Client: in, Args: []string{run}}, ops.CancelOptions{}); err != nil {
			t.Errorf("got %v", err)
		}
		now := ledgertest.NextAttemptID(run)
		if output == "" && !strings.Contains(words.String(), "run "+run+" is cancelled: it was handed back meanwhile and is run "+now) {
			t.Errorf("said %q", words.String())
		}
		var shown ops.RunView
		if output != "" && (ops.Decode([]byte(out.String()), &shown) != nil || shown.Run != now || shown.Job != job.Name || shown.Tick.IsZero() || shown.Outcome != jobs.OutcomeCancelled || shown.Ended.IsZero()) {
			t.Errorf("printed %q", out.String())
		}
		if left, err := ledgertest.InFlight(t.Context(), p.Ledger, job.Name); err != nil || len(left) != 0 {
			t.Errorf("in flight: %+v, %v", left, err)
		}
	}
}
