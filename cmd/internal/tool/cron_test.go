package tool

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/testkit"
)

// TestCronExplain needs neither Redis nor a file, whatever the environment names.
func TestCronExplain(t *testing.T) {
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + cmdtest.ClosedPort(t), "ESCAPEMENT_NODE_WEIGHT=0"}
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"gap", []string{"30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28", "-n", "3"}},
		{"fold-fixed", []string{"CRON_TZ=Europe/Berlin 30 2 * * *", "--from", "2026-10-25 00:00", "-n", "2"}},
		{"fold-interval", []string{"*/30 * * * *", "--tz", "Europe/Berlin", "--from", "2026-10-25T01:30", "-n", "6"}},
		{"day-left-out", []string{"0 9 * * *", "--tz", "Pacific/Apia", "--from", "2011-12-29", "-n", "3"}},
		{"hash", []string{"H H/6 * * *", "--from", "2026-01-01T00:00:00Z", "-n", "2"}},
		{"hash-of-a-job", []string{"H H/6 * * *", "--from", "2026-01-01T00:00:00Z", "-n", "2", "--job", "settle-orders"}},
		{"every", []string{"@every 250ms", "--tz", "Asia/Tokyo", "--from", "2026-01-01T00:00:00.1Z", "-n", "2"}},
		{"crontab", []string{"0 0 */2 * 1", "--from", "2026-04-08", "-n", "3"}},
		{"either-day", []string{"0 0 13 * FRI", "--from", "2026-04-08", "-n", "3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := cmdtest.Call(env, "", append([]string{"cron", "explain"}, tt.args...)...)
			if code != command.ExitDone || stderr != "" {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			testkit.Golden(t, "testdata/cron/"+tt.name+".want", stdout)
		})
	}
	code, stdout, stderr := cmdtest.Call(env, "", "cron", "explain", "@daily", "--from", "9999-12-31T00:00:01Z")
	if code != command.ExitDone || strings.Contains(stdout, "LOCAL") || !strings.Contains(stderr, "no tick from then on") {
		t.Errorf("at the end of time: exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr = cmdtest.Call(env, "", "cron", "explain", "*/60 * * * *"); code != command.ExitUsage || !strings.Contains(stderr, "step 60 never steps") {
		t.Errorf("a step that never steps: exit %d, %q", code, stderr)
	}
	if code, stdout, _ = cmdtest.Call(env, "", "cron", "explain", "@hourly"); code != command.ExitDone || strings.Count(stdout, "\n") != 14 {
		t.Errorf("without flags: exit %d, %s", code, stdout)
	}
}

func TestCronExplainJSON(t *testing.T) {
	type tick struct{ Tick, Local, Note string }
	type explained struct {
		Schedule, Resolved, Words, Job string
		TimeZone                       string `json:"time_zone"`
		FixedTimes                     bool   `json:"fixed_times"`
		From                           string
		Ticks                          []tick
	}
	got := cmdtest.Decode[explained](t, nil, "cron", "explain", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-29", "-n", "1")
	if got.Schedule != "CRON_TZ=Europe/Berlin 30 2 * * *" || got.Resolved != got.Schedule || got.Words != "at 02:30, every day, Europe/Berlin time" ||
		got.TimeZone != "Europe/Berlin" || !got.FixedTimes || got.Job != "" || got.From != "2026-03-28T23:00:00.000Z" ||
		len(got.Ticks) != 1 || got.Ticks[0] != (tick{"2026-03-29T01:00:00.000Z", "2026-03-29T03:00:00.000+02:00", "gap"}) {
		t.Errorf("got %+v", got)
	}
	if got = cmdtest.Decode[explained](t, nil, "cron", "explain", "H/20 * * * *"); got.Job != "example" || got.FixedTimes || len(got.Ticks) != 10 ||
		strings.Contains(got.Resolved, "H") || got.Schedule != "H/20 * * * *" {
		t.Errorf("got %+v", got)
	}
	if got = cmdtest.Decode[explained](t, nil, "cron", "explain", "@yearly", "--from", "9999-12-31"); got.Ticks == nil || len(got.Ticks) != 0 {
		t.Errorf("without ticks: %+v", got)
	}
}
