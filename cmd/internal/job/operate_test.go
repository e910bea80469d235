package job

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

func TestOperateJobs(t *testing.T) {
	minutely := jobs.Job{Name: "minutely", Schedule: "* * * * *"}
	steady := jobs.Job{Name: "steady", Schedule: "* * * * *"}
	p := cmdtest.Plant(t, minutely, jobs.Job{Name: "follower", After: []string{"minutely"}}, steady)
	p.Wants(command.ExitDone, "", "until it is resumed by ann: moving\\x1b[31m\n", "jobs", "pause", "minutely", "--reason", "moving\x1b[31m")
	if j := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "get", "minutely"); !j.Paused || j.Pause == nil || j.Pause.Author != "ann" ||
		!j.Pause.Until.IsZero() || !j.Orphan {
		t.Errorf("got %+v", j)
	}
	p.Wants(command.ExitDone, "paused, no node", "", "jobs", "list")
	p.Wants(command.ExitDone, "after minutely", "", "jobs", "list")
	p.Wants(command.ExitDone, "by ann: moving\\x1b[31m", "", "jobs", "get", "minutely")
	before := time.Now()
	j := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "pause", "minutely", "--reason", "longer", "--until", "+10m", "--author", "bob")
	if j.Pause == nil || j.Pause.Author != "bob" || j.Pause.Until.Sub(before).Round(time.Minute) != 10*time.Minute {
		t.Errorf("got %+v", j.Pause)
	}
	if j = cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "resume", "minutely"); j.Paused || j.Pause != nil {
		t.Errorf("got %+v", j)
	}
	p.Wants(command.ExitDone, "", "runs on its schedule", "jobs", "resume", "minutely")
	p.Wants(command.ExitRefused, "", "is over by Redis' clock", "jobs", "pause", "minutely", "--reason", "x", "--until", "-1h")

	p.Wants(command.ExitRefused, "", "jobs get", "jobs", "rewind", "minutely", "--to", "-2h")
	p.Wants(command.ExitRefused, "", "a rewind only goes back", "jobs", "rewind", "minutely", "--to", "2099-01-01T00:00:00Z")
	p.Wants(command.ExitRefused, "", "follows minutely", "jobs", "rewind", "follower", "--to", "-1m")
	p.Wants(command.ExitNotFound, "", `"minutly" in namespace escapement; `+"`jobs list` shows what there is; did you mean minutely", "jobs", "get", "minutly")
	for _, args := range [][]string{{"run"}, {"pause", "--reason", "x"}, {"resume"}, {"delete"}, {"rewind", "--to", "-1m"}} {
		p.Wants(command.ExitNotFound, "", "did you mean minutely", append([]string{"jobs", args[0], "minutly"}, args[1:]...)...)
	}
	p.Wants(command.ExitNotFound, "", "did you mean minutely", "runs", "list", "--job", "minutly")

	// A cursor at the end of the history is set back to its beginning.
	from := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "get", "steady").HistoryFrom
	now, next := time.Now().UnixMilli(), from.Add(10*time.Minute).UnixMilli()
	c := ledgertest.Claim{Job: "steady", Digest: steady.Definition().Digest(), Run: "r", TTL: time.Hour, From: from.UnixMilli(), Next: next,
		Skipped: []ledgertest.Pass{{Outcome: jobs.OutcomeMissed, Reason: ledgertest.ReasonLate, First: from.UnixMilli(), Last: next - 60_000, Count: 10, Next: next}}}
	if got, err := ledgertest.SendClaims(t.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, now, []ledgertest.Claim{c}); err != nil || got[0].Verdict != ledgertest.Passed {
		t.Fatal(got, err)
	}
	p.Wants(command.ExitDone, "10 missed", "", "jobs", "get", "steady")
	if got := cmdtest.NewApp().Run([]string{"jobs", "rewind", "steady", "--to", from.Add(2 * time.Minute).Format(time.RFC3339)}, nil, cmdtest.FullDisk{}, io.Discard, p.Env); got != command.ExitFailed {
		t.Errorf("with no room for the tick: exit %d", got)
	}
	p.Wants(command.ExitDone, ops.FormatTime(from.Add(time.Minute))+"\n", "", "jobs", "rewind", "steady", "--to", from.Add(time.Second).Format(time.RFC3339Nano))
	if j := cmdtest.Decode[ops.JobView](t, p.Env, "jobs", "rewind", "steady", "--to", from.Format(time.RFC3339)); !j.Next.Equal(from) {
		t.Errorf("the cursor stands at %s", j.Next)
	}

	p.Wants(command.ExitDone, "", "job follower is deleted, with its history", "jobs", "delete", "follower")
	id := p.Granted(minutely, "1")
	p.Wants(command.ExitRefused, "", "in flight", "jobs", "delete", "minutely")
	p.Wants(command.ExitRefused, "", "in flight", "jobs", "rewind", "minutely", "--to", "-1m")
	p.End("minutely", id, jobs.OutcomeSucceeded, "")
	if got := cmdtest.Decode[removedJSON](t, p.Env, "jobs", "remove", "minutely"); !got.Removed || got.Name != "minutely" {
		t.Errorf("got %+v", got)
	}
	p.Wants(command.ExitNotFound, "", "minutely", "jobs", "get", "minutely")
}

func TestOperateRuns(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := cmdtest.Plant(t, yearly)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	r := cmdtest.Decode[ops.RunView](t, p.Env, "jobs", "run", "yearly", "--at", at.Format(time.RFC3339), "--unique", "k", "--payload", `{"a":"<b>"}`)
	if r.Reason != "pending until "+ops.FormatTime(at) || !r.Due.Equal(at) || !strings.Contains(string(r.Payload), `"<b>"`) {
		t.Errorf("got %+v", r)
	}
	p.Wants(command.ExitDone, r.Run+"\n", "run "+r.Run+" was asked for before: it is pending until "+ops.FormatTime(at)+"\n", "jobs", "run", "yearly", "--unique", "k")
	p.Wants(command.ExitDone, "until "+ops.FormatTime(at), "", "runs", "list", "-o", "wide")
	p.Wants(command.ExitDone, "pending until "+ops.FormatTime(at), "", "runs", "get", r.Run)
	p.Wants(command.ExitRefused, "", "has not ended", "runs", "rerun", r.Run)
	p.Wants(command.ExitDone, "", "it will not run", "runs", "cancel", r.Run, "--reason", "not today")
	p.Wants(command.ExitDone, "cancelled by ann: not today", "", "runs", "list", "--outcome", "cancelled", "-o", "wide")
	p.Wants(command.ExitDone, "\nstarted       -\n", "", "runs", "get", r.Run)
	if again := cmdtest.Decode[ops.RunView](t, p.Env, "runs", "cancel", r.Run); again.Outcome != jobs.OutcomeCancelled || !again.Started.IsZero() {
		t.Errorf("got %+v", again)
	}
	p.Wants(command.ExitRunFailed, r.Run, "did not succeed: cancelled by ann: not today", "jobs", "run", "yearly", "--unique", "k", "--wait")
	p.Wants(command.ExitDone, `"pending: no living node holds the job"`, "is over by Redis' clock: the run is due at once", "jobs", "run", "yearly", "--at", "-2h", "-o", "json")

	id := p.Granted(yearly, "2")
	p.Wants(command.ExitDone, "", "its node is told to end it", "runs", "cancel", id)
	p.Wants(command.ExitDone, "to be cancelled by ann", "", "runs", "get", id)
	p.End("yearly", id, jobs.OutcomeFailed, "one\ttwo\x1b[2J\nthree \xff")
	p.Wants(command.ExitRefused, "", "has ended", "runs", "cancel", id)
	p.Wants(command.ExitDone, "\n\none\ttwo\x1b[2J\nthree \uFFFD\n", "", "runs", "get", id)
	p.Wants(command.ExitDone, "payload       2\n", "", "runs", "get", id)
	if r := cmdtest.Decode[ops.RunView](t, p.Env, "runs", "get", id); r.Output != "one\ttwo\x1b[2J\nthree \uFFFD" {
		t.Errorf("output %q", r.Output)
	}
	rerun := cmdtest.Decode[ops.RunView](t, p.Env, "runs", "rerun", id)
	if rerun.Attempt != 2 || rerun.Trigger != "rerun" || rerun.Run == id {
		t.Fatalf("got %+v", rerun)
	}
	p.Wants(command.ExitDone, rerun.Run+"\n", "", "runs", "rerun", id)
	p.Wants(command.ExitDone, "", "it will not run", "runs", "cancel", rerun.Run)
	p.Wants(command.ExitRunFailed, rerun.Run, "has ended: cancelled; for one more, rerun it in turn", "runs", "rerun", id, "--wait")
	id = p.Granted(yearly, "3")
	p.Wants(command.ExitDone, "", "its node is told to end it", "runs", "cancel", id)
	p.End("yearly", id, jobs.OutcomeCancelled, "")
	p.Wants(command.ExitDone, "", "it had ended so already", "runs", "cancel", id)
	for _, args := range [][]string{{"runs", "cancel", "nope"}, {"runs", "rerun", "nope"}} {
		p.Wants(command.ExitNotFound, "", "nope", args...)
	}
}

// A key outlives the row of its run, in a job whose history is short.
func TestUniqueWithoutARow(t *testing.T) {
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	id := p.Wants(command.ExitDone, "-", "", "jobs", "run", "yearly", "--unique", "k")
	p.Wants(command.ExitDone, "", "", "runs", "cancel", id)
	keys, err := p.Client.Keys(t.Context(), "*:history:yearly").Result()
	if err != nil || len(keys) != 1 || p.Client.Del(t.Context(), keys[0]).Err() != nil {
		t.Fatal(keys, err)
	}
	if r := cmdtest.Decode[ops.RunView](t, p.Env, "jobs", "run", "yearly", "--unique", "k"); r.Run != id || r.Job != "yearly" || r.Outcome != 0 {
		t.Errorf("got %+v", r)
	}
	p.Wants(command.ExitNotFound, id+"\n", "was asked for before; the history has it no more", "jobs", "run", "yearly", "--unique", "k", "--wait")
}
