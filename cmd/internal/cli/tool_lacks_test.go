package cli

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// A list with a record that cannot be read is the rest of the list, a note on stderr and exit code
// 0, from Redis and over the API.
func TestListsWithGarbage(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"}, jobs.Job{Name: "follows", After: []string{"yearly"}})
	run := p.Wants(command.ExitDone, "-", "", "jobs", "run", "yearly")
	const bad = "99|x|y"
	for _, err := range []error{
		p.Client.HSet(t.Context(), "{escapement:0}:jobs", "long", bad).Err(), p.Client.HSet(t.Context(), "{escapement:0}:backfills", "long", bad).Err(),
		p.Client.HSet(t.Context(), "{escapement}:roster", "stranger", bad).Err(), p.Client.RPush(t.Context(), "{escapement}:audit", bad).Err(),
		p.Client.LPush(t.Context(), "{escapement:0}:history:yearly", bad).Err(), p.Client.HSet(t.Context(), "{escapement:0}:runs", "odd", bad).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	admin, err := ops.New(p.Client, "")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(opshttp.New(admin, opshttp.Config{}))
	t.Cleanup(server.Close)
	for list, want := range map[string]string{
		"jobs list": "yearly", "jobs graph": "follows", "runs list": run, "nodes list": "", "locks list": "", "generations list": "", "audit list": "jobs run", "jobs backfills": "",
	} {
		noted := slices.Contains([]string{"jobs list", "jobs graph", "nodes list", "audit list", "jobs backfills"}, list)
		for _, from := range [][]string{{"--redis", "redis://" + p.Server.Addr()}, {"--api", server.URL}} {
			for _, form := range []string{"table", "json"} {
				args := append(append(strings.Fields(list), from...), "-o", form)
				code, stdout, stderr := cmdtest.Call(nil, "", args...)
				if code != command.ExitDone || !strings.Contains(stdout, want) || noted && !strings.Contains(stderr, "read") {
					t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
				}
				if form == "json" && !json.Valid([]byte(stdout)) {
					t.Errorf("%v: %s", args, stdout)
				}
			}
		}
	}
	if code, stdout, stderr := cmdtest.Call(p.Env, "", "jobs", "get", "long"); code != command.ExitFailed || stdout != "" {
		t.Errorf("jobs get long: exit %d, %s%s", code, stdout, stderr)
	}
}
