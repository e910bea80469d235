package cli

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestTools looks at a running node through every tool.
func TestTools(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p, env := startNode(t, redis, sampleJobs)
	p.Logged("run ended", `"job":"often"`)

	t.Run("jobs list", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "jobs", "list", "-o", "json")
		testkit.Golden(t, "testdata/jobs.want", scrub(stdout))
		jobs := cmdtest.Decode[[]map[string]any](t, env, "jobs", "list")
		if len(jobs) != 3 || jobs[0]["name"] != "fails" || jobs[0]["owner"] != "a1" {
			t.Errorf("got %v", jobs)
		}
	})
	t.Run("jobs get", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "jobs", "get", "yearly", "-o", "json")
		testkit.Golden(t, "testdata/job.want", scrub(stdout))
		if code, stdout, _ := cmdtest.Call(env, "", "jobs", "get", "yearly"); code != command.ExitDone || !strings.Contains(stdout, "time zone     Europe/Berlin\n") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("jobs run", func(t *testing.T) {
		code, stdout, stderr := cmdtest.Call(env, `{"n":1}`, "jobs", "run", "yearly", "--payload", "-", "--wait", "-o", "json")
		if code != command.ExitDone {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		testkit.Golden(t, "testdata/run.want", scrub(stdout))

		code, stdout, stderr = cmdtest.Call(env, "", "jobs", "run", "fails", "--wait")
		id := strings.TrimSpace(stdout)
		if code != command.ExitRunFailed || strings.Contains(id, "\n") || !strings.Contains(stderr, "did not succeed: failed") {
			t.Errorf("exit %d, %q, %q", code, stdout, stderr)
		}
		if r := cmdtest.Decode[runJSON](t, env, "runs", "get", id); r.Outcome != jobs.OutcomeFailed || r.Trigger != "manual" || !strings.Contains(r.Error, "this went wrong") {
			t.Errorf("got %+v", r)
		}
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "get", id); code != command.ExitDone || !strings.Contains(stdout, "\noutcome       failed\n") {
			t.Errorf("exit %d, %s", code, stdout)
		}

		code, stdout, _ = cmdtest.Call(env, "", "jobs", "run", "fails")
		if code != command.ExitDone || strings.Count(stdout, "\n") != 1 {
			t.Errorf("exit %d, %q: want the id on one line", code, stdout)
		}
	})
	t.Run("runs list", func(t *testing.T) {
		runs := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--job", "often")
		if len(runs) == 0 || slices.ContainsFunc(runs, func(r runJSON) bool { return r.Job != "often" || r.Trigger != "schedule" }) {
			t.Errorf("got %+v", runs)
		}
		if got := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--limit", "1"); len(got) != 1 {
			t.Errorf("--limit 1: %d", len(got))
		}
		if got := cmdtest.Decode[[]runJSON](t, env, "runs", "list", "--since", "2099-01-01T00:00:00Z"); got == nil || len(got) != 0 {
			t.Errorf("since a time to come: %v, want []", got)
		}
		if code, stdout, _ := cmdtest.Call(env, "", "runs", "list", "-o", "wide", "--outcome", "failed"); code != command.ExitDone || !strings.Contains(stdout, "this went wrong") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("nodes list", func(t *testing.T) {
		_, stdout, _ := cmdtest.Call(env, "", "nodes", "list", "-o", "json")
		testkit.Golden(t, "testdata/nodes.want", scrub(stdout))
		if code, stdout, _ := cmdtest.Call(env, "", "nodes", "list"); code != command.ExitDone || !strings.Contains(stdout, "\na1    active") {
			t.Errorf("exit %d, %s", code, stdout)
		}
	})
	t.Run("ledger verify", func(t *testing.T) {
		if got := cmdtest.Decode[ops.Verification](t, env, "ledger", "verify"); len(got.Violations)+len(got.UnknownFormat)+len(got.Unverified) != 0 || got.Checked.Jobs != 3 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("not found", func(t *testing.T) {
		for _, args := range [][]string{
			{"jobs", "get", "nope"}, {"jobs", "run", "nope"}, {"runs", "list", "--job", "nope"}, {"runs", "get", "nope"},
			{"ledger", "verify", "--job", "nope"}, {"jobs", "list", "--namespace", "nope"}, {"nodes", "list", "--namespace", "nope"},
		} {
			code, stdout, stderr := cmdtest.Call(env, "", args...)
			if code != command.ExitNotFound || stdout != "" || !strings.Contains(stderr, "nope") {
				t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		other := cmdtest.Start(t, append(env, "ESCAPEMENT_REDIS_PARTITIONS=4"), "run", "--config", testkit.Write(t, sampleJobs))
		other.Exits(command.ExitRefused)
		if !strings.Contains(other.Stderr.Text(), "created with 1 partition") {
			t.Error("it does not say why")
		}
	})
	t.Run("broken history", func(t *testing.T) {
		breakHistory(t, redis)
		code, stdout, stderr := cmdtest.Call(env, "", "ledger", "verify", "--job", "often")
		if code != command.ExitFailed || !strings.Contains(stdout, "often") || !strings.Contains(stderr, "do not hold") {
			t.Errorf("exit %d, %q, %q: a missing row must be seen", code, stdout, stderr)
		}
	})
	p.Signal(syscall.SIGTERM)
	p.Exits(command.ExitDone)
}

// scrub replaces the parts that differ from run to run.
func scrub(text string) string {
	for _, s := range [][2]string{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, "TIME"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
		{`("token": )"\d{16}"`, `$1"TOKEN"`},
		{`(_ms": )-?\d+`, "${1}MS"},
		{`("(owned|running)": )\d+`, "${1}N"},
		{`("version": )"[^"]+"`, `$1"VERSION"`},
		{`("last(_success)?": )(null|"TIME")`, "${1}LAST"},
		{`("last_outcome": )"[^"]*"`, "${1}OUTCOME"},
		{`("open": )"[^"]*"`, `$1"OPEN"`},
		{`("zone_data": )"[^"]*"`, `$1"ZONES"`},
		{`("counts": )\{[^}]*\}`, "${1}COUNTS"},
	} {
		text = regexp.MustCompile(s[0]).ReplaceAllString(text, s[1])
	}
	return text
}

// breakHistory takes the oldest row of the job often out of Redis.
func breakHistory(t *testing.T, server *redistest.Server) {
	t.Helper()
	client := server.Client(t)
	keys, err := client.Keys(t.Context(), "*:history:often").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("got %v, %v", keys, err)
	}
	if err := client.LPop(t.Context(), keys[0]).Err(); err != nil {
		t.Fatal(err)
	}
}
