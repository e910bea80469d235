package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// planted are jobs that no node holds, so that nothing moves by itself.
type planted struct {
	*ledgertest.Ledger
	t      *testing.T
	env    []string
	client *redis.Client
	server *redistest.Server
}

func plant(t *testing.T, list ...jobs.Job) *planted {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	l, err := ledgertest.Open(t.Context(), client, ledgertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := &planted{Ledger: l, t: t, client: client, server: server, env: []string{"ESCAPEMENT_REDIS_URL=redis://" + server.Addr(), "ESCAPEMENT_AUTHOR=ann"}}
	for _, j := range list {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			t.Fatal(err)
		}
		d := ledgertest.Definition{Job: j.Name, Digest: j.Definition().Digest(), Text: text}
		if schedule, err := j.ParsedSchedule(); err != nil {
			t.Fatal(err)
		} else if schedule != nil {
			d.Cursor = schedule.Next(time.Now().Add(-time.Hour)).UnixMilli()
		}
		if got, err := l.Define(t.Context(), time.Now().UnixMilli(), []ledgertest.Definition{d}); err != nil || got[0].Status != "created" {
			t.Fatal(got, err)
		}
	}
	return p
}

// granted is a run by hand that a node has begun.
func (p *planted) granted(job jobs.Job, payload string) string {
	p.t.Helper()
	_, stdout, _ := call(p.env, "", "jobs", "run", job.Name, "--payload", payload)
	id := strings.TrimSpace(stdout)
	c := ledgertest.Claim{Job: job.Name, Digest: job.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true, Attempts: 2}
	got, err := p.Claim(p.t.Context(), ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c})
	if err != nil || got[0].Verdict != ledgertest.Granted {
		p.t.Fatal(got, err)
	}
	return id
}

func (p *planted) settle(job, run string, outcome jobs.Outcome, output string) {
	p.t.Helper()
	now := time.Now().UnixMilli()
	r := ledgertest.Report{Job: job, Run: run, Outcome: outcome, Started: now, Ended: now, Tries: 1, Output: []byte(output)}
	if got, err := p.Settle(p.t.Context(), []ledgertest.Report{r}); err != nil || got[0] != ledgertest.Settled {
		p.t.Fatal(got, err)
	}
}

// wants runs one command line and compares its exit code and its output: with out "" nothing on
// stdout.
func (p *planted) wants(code int, out, words string, args ...string) string {
	p.t.Helper()
	got, stdout, stderr := call(p.env, "", args...)
	if got != code || !strings.Contains(stdout, out) || !strings.Contains(stderr, words) {
		p.t.Errorf("%v: exit %d, want %d\nstdout %q, want %q\nstderr %q, want %q", args, got, code, stdout, out, stderr, words)
	}
	if out == "" && stdout != "" {
		p.t.Errorf("%v: %q on stdout", args, stdout)
	}
	return strings.TrimSpace(stdout)
}

func TestOperateJobs(t *testing.T) {
	minutely := jobs.Job{Name: "minutely", Schedule: "* * * * *"}
	steady := jobs.Job{Name: "steady", Schedule: "* * * * *"}
	p := plant(t, minutely, jobs.Job{Name: "follower", After: []string{"minutely"}}, steady)
	p.wants(exitDone, "", "until it is resumed by ann: moving\\x1b[31m\n", "jobs", "pause", "minutely", "--reason", "moving\x1b[31m")
	if j := decode[ops.JobView](t, p.env, "jobs", "get", "minutely"); !j.Paused || j.Pause == nil || j.Pause.Author != "ann" ||
		!j.Pause.Until.IsZero() || !j.Orphan {
		t.Errorf("got %+v", j)
	}
	p.wants(exitDone, "paused, no node", "", "jobs", "list")
	p.wants(exitDone, "after minutely", "", "jobs", "list")
	p.wants(exitDone, "by ann: moving\\x1b[31m", "", "jobs", "get", "minutely")
	before := time.Now()
	j := decode[ops.JobView](t, p.env, "jobs", "pause", "minutely", "--reason", "longer", "--until", "+10m", "--author", "bob")
	if j.Pause == nil || j.Pause.Author != "bob" || j.Pause.Until.Sub(before).Round(time.Minute) != 10*time.Minute {
		t.Errorf("got %+v", j.Pause)
	}
	if j = decode[ops.JobView](t, p.env, "jobs", "resume", "minutely"); j.Paused || j.Pause != nil {
		t.Errorf("got %+v", j)
	}
	p.wants(exitDone, "", "runs on its schedule", "jobs", "resume", "minutely")
	p.wants(exitRefused, "", "is over by Redis' clock", "jobs", "pause", "minutely", "--reason", "x", "--until", "-1h")

	p.wants(exitRefused, "", "jobs get", "jobs", "rewind", "minutely", "--to", "-2h")
	p.wants(exitRefused, "", "a rewind only goes back", "jobs", "rewind", "minutely", "--to", "2099-01-01T00:00:00Z")
	p.wants(exitRefused, "", "follows minutely", "jobs", "rewind", "follower", "--to", "-1m")
	p.wants(exitNotFound, "", `"minutly" in namespace escapement; `+"`jobs list` shows what there is; did you mean minutely", "jobs", "get", "minutly")
	for _, args := range [][]string{{"run"}, {"pause", "--reason", "x"}, {"resume"}, {"delete"}, {"rewind", "--to", "-1m"}} {
		p.wants(exitNotFound, "", "did you mean minutely", append([]string{"jobs", args[0], "minutly"}, args[1:]...)...)
	}
	p.wants(exitNotFound, "", "did you mean minutely", "runs", "list", "--job", "minutly")

	// A cursor at the end of the history is set back to its beginning.
	from := decode[ops.JobView](t, p.env, "jobs", "get", "steady").HistoryFrom
	now, next := time.Now().UnixMilli(), from.Add(10*time.Minute).UnixMilli()
	c := ledgertest.Claim{Job: "steady", Digest: steady.Definition().Digest(), Run: "r", TTL: time.Hour, From: from.UnixMilli(), Next: next,
		Skipped: []ledgertest.Pass{{Outcome: jobs.OutcomeMissed, Reason: ledgertest.ReasonLate, First: from.UnixMilli(), Last: next - 60_000, Count: 10, Next: next}}}
	if got, err := p.Claim(t.Context(), ledgertest.Claimer{ID: "n", Name: "n1"}, now, []ledgertest.Claim{c}); err != nil || got[0].Verdict != ledgertest.Passed {
		t.Fatal(got, err)
	}
	p.wants(exitDone, "10 missed", "", "jobs", "get", "steady")
	if got := new(app).Run([]string{"jobs", "rewind", "steady", "--to", from.Add(2 * time.Minute).Format(time.RFC3339)}, nil, fullDisk{}, io.Discard, p.env); got != exitFailed {
		t.Errorf("with no room for the tick: exit %d", got)
	}
	p.wants(exitDone, ops.FormatTime(from.Add(time.Minute))+"\n", "", "jobs", "rewind", "steady", "--to", from.Add(time.Second).Format(time.RFC3339Nano))
	if j := decode[ops.JobView](t, p.env, "jobs", "rewind", "steady", "--to", from.Format(time.RFC3339)); !j.Next.Equal(from) {
		t.Errorf("the cursor stands at %s", j.Next)
	}

	p.wants(exitDone, "", "job follower is deleted, with its history", "jobs", "delete", "follower")
	id := p.granted(minutely, "1")
	p.wants(exitRefused, "", "in flight", "jobs", "delete", "minutely")
	p.wants(exitRefused, "", "in flight", "jobs", "rewind", "minutely", "--to", "-1m")
	p.settle("minutely", id, jobs.OutcomeSucceeded, "")
	if got := decode[removedJSON](t, p.env, "jobs", "remove", "minutely"); !got.Removed || got.Name != "minutely" {
		t.Errorf("got %+v", got)
	}
	p.wants(exitNotFound, "", "minutely", "jobs", "get", "minutely")
}

func TestOperateRuns(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := plant(t, yearly)
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	r := decode[ops.RunView](t, p.env, "jobs", "run", "yearly", "--at", at.Format(time.RFC3339), "--unique", "k", "--payload", `{"a":"<b>"}`)
	if r.Reason != "pending until "+ops.FormatTime(at) || !r.Due.Equal(at) || !strings.Contains(string(r.Payload), `"<b>"`) {
		t.Errorf("got %+v", r)
	}
	p.wants(exitDone, r.Run+"\n", "run "+r.Run+" was asked for before: it is pending until "+ops.FormatTime(at)+"\n", "jobs", "run", "yearly", "--unique", "k")
	p.wants(exitDone, "until "+ops.FormatTime(at), "", "runs", "list", "-o", "wide")
	p.wants(exitDone, "pending until "+ops.FormatTime(at), "", "runs", "get", r.Run)
	p.wants(exitRefused, "", "has not ended", "runs", "rerun", r.Run)
	p.wants(exitDone, "", "it will not run", "runs", "cancel", r.Run, "--reason", "not today")
	p.wants(exitDone, "cancelled by ann: not today", "", "runs", "list", "--outcome", "cancelled", "-o", "wide")
	p.wants(exitDone, "\nstarted       -\n", "", "runs", "get", r.Run)
	if again := decode[ops.RunView](t, p.env, "runs", "cancel", r.Run); again.Outcome != jobs.OutcomeCancelled || !again.Started.IsZero() {
		t.Errorf("got %+v", again)
	}
	p.wants(exitRunFailed, r.Run, "did not succeed: cancelled by ann: not today", "jobs", "run", "yearly", "--unique", "k", "--wait")
	p.wants(exitDone, `"pending: no living node holds the job"`, "is over by Redis' clock: the run is due at once", "jobs", "run", "yearly", "--at", "-2h", "-o", "json")

	id := p.granted(yearly, "2")
	p.wants(exitDone, "", "its node is told to end it", "runs", "cancel", id)
	p.wants(exitDone, "to be cancelled by ann", "", "runs", "get", id)
	p.settle("yearly", id, jobs.OutcomeFailed, "one\ttwo\x1b[2J\nthree \xff")
	p.wants(exitRefused, "", "has ended", "runs", "cancel", id)
	p.wants(exitDone, "\n\none\ttwo\x1b[2J\nthree \uFFFD\n", "", "runs", "get", id)
	p.wants(exitDone, "payload       2\n", "", "runs", "get", id)
	if r := decode[ops.RunView](t, p.env, "runs", "get", id); r.Output != "one\ttwo\x1b[2J\nthree \uFFFD" {
		t.Errorf("output %q", r.Output)
	}
	rerun := decode[ops.RunView](t, p.env, "runs", "rerun", id)
	if rerun.Attempt != 2 || rerun.Trigger != "rerun" || rerun.Run == id {
		t.Fatalf("got %+v", rerun)
	}
	p.wants(exitDone, rerun.Run+"\n", "", "runs", "rerun", id)
	p.wants(exitDone, "", "it will not run", "runs", "cancel", rerun.Run)
	p.wants(exitRunFailed, rerun.Run, "has ended: cancelled; for one more, rerun it in turn", "runs", "rerun", id, "--wait")
	id = p.granted(yearly, "3")
	p.wants(exitDone, "", "its node is told to end it", "runs", "cancel", id)
	p.settle("yearly", id, jobs.OutcomeCancelled, "")
	p.wants(exitDone, "", "it had ended so already", "runs", "cancel", id)
	for _, args := range [][]string{{"runs", "cancel", "nope"}, {"runs", "rerun", "nope"}} {
		p.wants(exitNotFound, "", "nope", args...)
	}
}

// A key outlives the row of its run, in a job whose history is short.
func TestUniqueWithoutARow(t *testing.T) {
	p := plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	id := p.wants(exitDone, "-", "", "jobs", "run", "yearly", "--unique", "k")
	p.wants(exitDone, "", "", "runs", "cancel", id)
	keys, err := p.client.Keys(t.Context(), "*:history:yearly").Result()
	if err != nil || len(keys) != 1 || p.client.Del(t.Context(), keys[0]).Err() != nil {
		t.Fatal(keys, err)
	}
	if r := decode[ops.RunView](t, p.env, "jobs", "run", "yearly", "--unique", "k"); r.Run != id || r.Job != "yearly" || r.Outcome != 0 {
		t.Errorf("got %+v", r)
	}
	p.wants(exitNotFound, id+"\n", "was asked for before; the history has it no more", "jobs", "run", "yearly", "--unique", "k", "--wait")
}
