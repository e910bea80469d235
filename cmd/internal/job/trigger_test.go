package job

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// TestWaitThroughAnOutage takes Redis away from a tool that waits, and gives it back.
func TestWaitThroughAnOutage(t *testing.T) {
	t.Parallel()
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := cmdtest.Plant(t, yearly)
	var words cmdtest.Buffer
	var out strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- cmdtest.NewApp().Run([]string{"jobs", "run", "yearly", "--unique", "k", "--wait"}, strings.NewReader(""), &out, &words, p.Env)
	}()
	id := ledgertest.UniqueRun("yearly", "k")
	cmdtest.Eventually(t, "it is asked for", func() bool { got, _, _ := cmdtest.Call(p.Env, "", "runs", "get", id); return got == command.ExitDone })
	if err := p.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	cmdtest.Eventually(t, "it says that it goes on waiting", func() bool { return strings.Contains(words.String(), "still waiting for run "+id) })
	if err := p.Server.Restart(); err != nil {
		t.Fatal(err)
	}
	c := ledgertest.Claim{Job: "yearly", Digest: yearly.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true}
	cmdtest.Eventually(t, "the run is granted", func() bool {
		got, err := ledgertest.SendClaims(t.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c})
		return err == nil && got[0].Verdict == ledgertest.Granted
	})
	p.End("yearly", id, jobs.OutcomeSucceeded, "")
	if got := <-code; got != command.ExitDone || out.String() != id+"\n" || strings.Count(words.String(), "still waiting") != 1 ||
		!strings.Contains(words.String(), "escapement: the run succeeded, after ") {
		t.Errorf("exit %d, %q, %q", got, out.String(), words.String())
	}
}

// TestShownRuns covers the columns of a table of runs, and its note about left out runs.
func TestShownRuns(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly", OnCrash: jobs.OnCrashRerun}
	p := cmdtest.Plant(t, yearly, jobs.Job{Name: "follower", After: []string{"yearly"}})
	id := p.Granted(yearly, "1")
	p.Wants(command.ExitDone, "\ntries         -\n", "", "runs", "get", id)
	p.Wants(command.ExitDone, "TRIGGER", "", "runs", "list", "-o", "wide")
	next := ledgertest.NextAttemptID(id)
	r := ledgertest.Report{Job: "yearly", Run: id, Outcome: jobs.OutcomeLost, Reason: "why", Started: 1, Ended: 2, Rerun: true, Error: "it\x1b[31m\n\nruns on\n"}
	if got, err := ledgertest.Settle(t.Context(), p.Ledger, []ledgertest.Report{r}); err != nil || got[0] != ledgertest.Settled {
		t.Fatal(got, err)
	}
	p.Wants(command.ExitDone, "why: it\\x1b[31m  runs on\n", "", "runs", "list", "--outcome", "lost", "-o", "wide")
	p.Wants(command.ExitDone, "\nnext attempt  "+next+"\n", "", "runs", "get", id)
	p.Wants(command.ExitDone, "\nerror         it\\x1b[31m\n              \n              runs on\nnode ", "", "runs", "get", id)
	if out := p.Wants(command.ExitDone, "no living node holds the job", "", "runs", "list", "--outcome", "pending", "-o", "wide"); strings.Contains(out, "running") || !strings.Contains(out, "pending  2") {
		t.Errorf("pending ones are shown as\n%s", out)
	}
	if got := cmdtest.Decode[[]ops.RunView](t, p.Env, "runs", "list", "--outcome", "pending"); len(got) != 1 || got[0].Outcome != jobs.OutcomeRunning {
		t.Errorf("got %+v", got)
	}
	for range 52 {
		p.Wants(command.ExitDone, "-", "", "jobs", "run", "yearly")
	}
	p.Wants(command.ExitDone, "[", "escapement: 50 rows shown; there are more: add --after ", "runs", "list", "--limit", "50", "-o", "json", "--job", "yearly", "--since", "200000h")
	if out := p.Wants(command.ExitDone, "TICK", "50 rows shown; there are more", "runs", "list", "--limit", "50"); strings.Count(out, "\n") != 50 {
		t.Errorf("got %d lines", strings.Count(out, "\n"))
	}
	if got := cmdtest.Decode[[]ops.RunView](t, p.Env, "runs", "list"); len(got) != 54 {
		t.Errorf("as JSON: %d", len(got))
	}
	keys, err := p.Client.Keys(t.Context(), "*:history:yearly").Result()
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	p.Client.RPush(t.Context(), keys[0], "2|R|newer")
	for _, args := range [][]string{{"runs", "list"}, {"jobs", "get", "yearly"}} {
		p.Wants(command.ExitDone, "yearly", "1 record of the history cannot be read by this version and is left alone; ledger verify names them", args...)
	}
}

func TestShownJobs(t *testing.T) {
	full := jobs.Job{Name: "full", Schedule: "@yearly", CatchUp: jobs.CatchUpAll, OnCrash: jobs.OnCrashRerun, StartWithin: 2 * time.Minute,
		Timeout: time.Minute, Retry: jobs.Retry{Max: 2}, Labels: map[string]string{"disk": "fast", "a": "b"}}
	p := cmdtest.Plant(t, full, jobs.Job{Name: "follower", After: []string{"full"}})
	for _, want := range []string{"catch up      all, at most 10\n", "start within  2m\n", "on crash      rerun, at most 3 times\n", "timeout       1m\n",
		"ttl           15s\n", "retry         2 times, after 1s up to 1m\n", "labels        a=b, disk=fast\n"} {
		p.Wants(command.ExitDone, want, "", "jobs", "get", "full")
	}
	if j := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "get", "full"); j.CatchUpMax != 10 || j.StartWithin != 2*time.Minute || j.OnCrash != jobs.OnCrashRerun || j.RerunMax != 3 ||
		j.Timeout != time.Minute || j.TTL != 15*time.Second || j.Retry != (jobs.Retry{Max: 2, Backoff: time.Second, MaxBackoff: time.Minute}) || j.Labels["disk"] != "fast" {
		t.Errorf("got %+v", j)
	}
	for _, want := range []string{"\ntime zone     -\n", "\ncatch up      -\n"} {
		p.Wants(command.ExitDone, want, "", "jobs", "get", "follower")
	}
	for _, absent := range []string{"\nsuperseded ", "\nstandby "} { // "standby -" reads as on standby
		if out := p.Wants(command.ExitDone, "\nno node       ", "", "jobs", "get", "full"); strings.Contains(out, absent) {
			t.Errorf("%q in\n%s", absent, out)
		}
	}
	j := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "pause", "full", "--reason", "x", "--until", "+1h")
	p.Wants(command.ExitDone, "paused until "+ops.FormatTime(j.Pause.Until)+", no node", "", "jobs", "list", "-o", "wide")
	p.Wants(command.ExitDone, "paused until "+(&print.Table{Zone: time.UTC}).At(j.Pause.Until)+", no node", "", "jobs", "list")
}

// TestWaitNamesTheNextAttempt does not wait for it.
func TestWaitNamesTheNextAttempt(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly", OnCrash: jobs.OnCrashRerun}
	p := cmdtest.Plant(t, yearly)
	id := p.Wants(command.ExitDone, "-", "no living node", "jobs", "run", "yearly", "--unique", "k")
	c := ledgertest.Claim{Job: "yearly", Digest: yearly.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true, Attempts: 2}
	if got, err := ledgertest.SendClaims(t.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c}); err != nil || got[0].Verdict != ledgertest.Granted {
		t.Fatal(got, err)
	}
	next, now := ledgertest.NextAttemptID(id), time.Now().UnixMilli()
	r := ledgertest.Report{Job: "yearly", Run: id, Outcome: jobs.OutcomeLost, Started: now, Ended: now, Rerun: true}
	if got, err := ledgertest.Settle(t.Context(), p.Ledger, []ledgertest.Report{r}); err != nil || got[0] != ledgertest.Settled {
		t.Fatal(got, err)
	}
	p.Wants(command.ExitRunFailed, id+"\n", "did not succeed: lost; the attempt after it is "+next+"\n", "jobs", "run", "yearly", "--unique", "k", "--wait")
}

// An id that could not be written is lost to the caller who requested the run; the exit code shows
// the loss.
func TestNoRoomForTheID(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := cmdtest.Plant(t, yearly)
	ended := p.Granted(yearly, "1")
	p.End("yearly", ended, jobs.OutcomeSucceeded, "")
	for _, args := range [][]string{{"jobs", "run", "yearly"}, {"jobs", "run", "yearly", "--unique", "k", "-o", "json"}, {"runs", "rerun", ended}} {
		var words strings.Builder
		code := cmdtest.NewApp().Run(args, strings.NewReader(""), cmdtest.FullDisk{}, &words, p.Env)
		if code != command.ExitFailed || !strings.Contains(words.String(), "no space left") {
			t.Errorf("%v: exit %d, %q", args, code, words.String())
		}
	}
}

// A run that goes on is not waited for beyond --wait-for.
func TestWaitFor(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	code, out, words := cmdtest.Call(p.Env, "", "jobs", "run", "yearly", "--unique", "k", "--wait-for", "20ms")
	id := ledgertest.UniqueRun("yearly", "k")
	if code != command.ExitRunFailed || out != id+"\n" || !strings.Contains(words, "the run did not succeed within 20ms: it is pending") {
		t.Errorf("exit %d, %q, %q", code, out, words)
	}
	code, out, _ = cmdtest.Call(p.Env, "", "jobs", "run", "yearly", "--unique", "k", "--wait-for", "20ms", "-o", "json")
	if code != command.ExitRunFailed || !strings.Contains(out, `"outcome": "running"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}
