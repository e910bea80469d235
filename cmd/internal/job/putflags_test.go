package job

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// Each setting of a stored job has a flag, which sets it.
func TestPutFlags(t *testing.T) {
	t.Parallel()
	cmd, j := &cobra.Command{Use: "put"}, jobs.Job{}
	putFlags(cmd, &j)
	resolve := boundFlags(cmd, &j)
	args := `--handler h --schedule @daily --time-zone UTC --after a,b --after c --when any --except 2026-12-24,2026-12-31..2027-01-01 --only 2026-12-25
		--start-at 2026-12-01T09:00:00+01:00 --end-at 2026-12-02 --jitter 30s --max-runs 7 --overlap queue --catch-up all --catch-up-max 5
		--start-within 1d --on-crash rerun --rerun-max 2 --timeout 1h --stall-after 10m --on-stall cancel --ttl 20s --shards 2 --param x,y --param z
		--placement race --label disk=fast --label zone=a --guard g --success-within 26h --managed-by us
		--retry-max 3 --retry-backoff 2s --retry-max-backoff 1m --retry-try-timeout 1500ms --retry-on other_node --limit-group db --limit-max 4`
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.PreRunE(cmd, nil), resolve(command.Tool{})); err != nil {
		t.Fatal(err)
	}
	got, err := jobs.Settings.Encode(&j, false)
	want := `{"schedule":"@daily","time_zone":"UTC","except":["2026-12-24","2026-12-31..2027-01-01"],"only":["2026-12-25"],` +
		`"start_at":"2026-12-01T08:00:00Z","end_at":"2026-12-02T00:00:00Z","jitter":"30s","max_runs":7,"overlap":"queue",` +
		`"catch_up":"all","catch_up_max":5,"start_within":"24h","on_crash":"rerun","rerun_max":2,"timeout":"1h","stall_after":"10m",` +
		`"on_stall":"cancel","ttl":"20s","retry":{"max":3,"backoff":"2s","max_backoff":"1m","try_timeout":"1.5s","on":"other_node"},` +
		`"shards":2,"params":["x,y","z"],"placement":"race","labels":{"disk":"fast","zone":"a"},"after":["a","b","c"],"when":"any",` +
		`"limit":{"group":"db","max":4},"guard":"g","handler":"h","managed_by":"us","expect":{"success_within":"26h"}}`
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s, want\n%s", err, got, want)
	}
	put := jobsPutCommand(new(command.App))
	for _, s := range spec.All() {
		switch f := put.Flags().Lookup(s.Flag()); {
		case s.Name == "name": // the argument
		case f == nil:
			t.Errorf("%s has no flag", s.Name)
		case f.Usage == "" || f.DefValue != "":
			t.Errorf("--%s: the help %q, by default %q", f.Name, f.Usage, f.DefValue)
		}
		if s.Name != "name" && s.Name != "payload" && !jobs.Settings.Given(&j, s) { // the argument, and a flag of the command
			t.Errorf("%s was not set", s.Name)
		}
	}
}

// An invalid value of a flag is refused with the flag; all else is judged by the API.
func TestPutFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--timeout=500us": `"500us" for "--timeout" flag: 500us is no whole number of milliseconds`,
		"--ttl=15":        `"15" for "--ttl" flag: 15 has no unit; did you mean 15s`,
		"--start-at=soon": `--start-at "soon" is neither a time such as 2026-11-24, 2026-11-24 22:00 or`,
		"--overlap=foo":   `"foo" for "--overlap" flag: "foo" is not one of skip, queue, replace, allow`,
		"--label=disk":    `"disk" for "--label" flag: "disk" is not KEY=VALUE`,
		"--max-runs=many": `"many" for "--max-runs" flag`,
	} {
		if code, _, stderr := cmdtest.Call(nil, "", "jobs", "put", "a", "--handler", "h", flag); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", flag, code, stderr, want)
		}
	}
}
