package cli

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

// Each setting of a stored job has a flag: one that is added to StoredView and has none fails here.
func TestPutFlags(t *testing.T) {
	t.Parallel()
	cmd, v := &cobra.Command{Use: "put"}, scheduler.StoredView{}
	take, bounds := putFlags(cmd, &v), boundFlags(cmd, &v)
	args := `--handler h --schedule @daily --time-zone UTC --after a,b --after c --when any --except 2026-12-24,2026-12-31..2027-01-01 --only 2026-12-25
		--start-at 2026-12-01T09:00:00+01:00 --end-at 2026-12-02 --jitter 30s --max-runs 7 --overlap queue --catch-up all --catch-up-max 5
		--start-within 1d --on-crash rerun --rerun-max 2 --timeout 1h --stall-after 10m --on-stall cancel --ttl 20s --shards 2 --param x,y --param z
		--placement race --label disk=fast --guard g --success-within 26h --managed-by us
		--retry-max 3 --retry-backoff 2s --retry-max-backoff 1m --retry-try-timeout 1500ms --retry-on other_node --limit-group db --limit-max 4`
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	take()
	resolve, err := bounds()
	if err = errors.Join(err, resolve(tool{})); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(v)
	want := `{"name":"","handler":"h","managed_by":"us","schedule":"@daily","after":["a","b","c"],"when":"any","time_zone":"UTC","overlap":"queue",` +
		`"catch_up":"all","catch_up_max":5,"start_within_ms":86400000,"on_crash":"rerun","rerun_max":2,"timeout_ms":3600000,"stall_after_ms":600000,` +
		`"on_stall":"cancel","ttl_ms":20000,"retry":{"max":3,"backoff_ms":2000,"max_backoff_ms":60000,"try_timeout_ms":1500,"on":"other_node"},` +
		`"shards":2,"params":["x,y","z"],"placement":"race","labels":{"disk":"fast"},"limit":{"group":"db","max":4},"guard":"g",` +
		`"success_within_ms":93600000,"except":["2026-12-24","2026-12-31..2027-01-01"],"only":["2026-12-25"],` +
		`"start_at":"2026-12-01T08:00:00.000Z","end_at":"2026-12-02T00:00:00.000Z","jitter_ms":30000,"max_runs":7}`
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s, want\n%s", err, got, want)
	}
	for f, value := range reflect.ValueOf(v).Fields() {
		if value.IsZero() && f.Name != "Name" && f.Name != "Payload" && f.Name != "Version" { // the argument, a flag of the command, no setting
			t.Errorf("%s has no flag", f.Name)
		}
	}
}

// What is no value of a flag is refused with the flag; the rest is the API's to judge.
func TestPutFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--timeout=500us": `"500us" for "--timeout" flag: 500us is no whole number of milliseconds`,
		"--ttl=15":        `"15" for "--ttl" flag: 15 has no unit; did you mean 15s`,
		"--start-at=soon": `--start-at "soon" is neither a time such as 2026-11-24, 2026-11-24 22:00 or`,
		"--max-runs=many": `"many" for "--max-runs" flag`,
	} {
		if code, _, stderr := call(nil, "", "jobs", "put", "a", "--handler", "h", flag); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", flag, code, stderr, want)
		}
	}
}
