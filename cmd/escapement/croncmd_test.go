package main

import (
	"strings"
	"testing"
	"time"
)

// TestCronExplain needs neither Redis nor a file, whatever the environment names.
func TestCronExplain(t *testing.T) {
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + closedPort(t), "ESCAPEMENT_NODE_WEIGHT=0"}
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
		{"either-day", []string{"0 0 13 * FRI", "--from", "2026-04-08", "-n", "3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := call(env, "", append([]string{"cron", "explain"}, tt.args...)...)
			if code != exitDone || stderr != "" {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			golden(t, "testdata/cron/"+tt.name+".want", stdout)
		})
	}
	code, stdout, stderr := call(env, "", "cron", "explain", "@daily", "--from", "9999-12-31T00:00:01Z")
	if code != exitDone || strings.Contains(stdout, "LOCAL") || !strings.Contains(stderr, "no tick from then on") {
		t.Errorf("at the end of time: exit %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ = call(env, "", "cron", "explain", "@hourly"); code != exitDone || strings.Count(stdout, "\n") != 14 {
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
	got := decode[explained](t, nil, "cron", "explain", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-29", "-n", "1")
	if got.Schedule != "CRON_TZ=Europe/Berlin 30 2 * * *" || got.Resolved != got.Schedule || got.Words != "at 02:30, every day, Europe/Berlin time" ||
		got.TimeZone != "Europe/Berlin" || !got.FixedTimes || got.Job != "" || got.From != "2026-03-28T23:00:00.000Z" ||
		len(got.Ticks) != 1 || got.Ticks[0] != (tick{"2026-03-29T01:00:00.000Z", "2026-03-29T03:00:00.000+02:00", "gap"}) {
		t.Errorf("got %+v", got)
	}
	if got = decode[explained](t, nil, "cron", "explain", "H/20 * * * *"); got.Job != "example" || got.FixedTimes || len(got.Ticks) != 10 ||
		strings.Contains(got.Resolved, "H") || got.Schedule != "H/20 * * * *" {
		t.Errorf("got %+v", got)
	}
	if got = decode[explained](t, nil, "cron", "explain", "@yearly", "--from", "9999-12-31"); got.Ticks == nil || len(got.Ticks) != 0 {
		t.Errorf("without ticks: %+v", got)
	}
}

// TestCronExplainRefuses wants exit 2, nothing on stdout and no fault left out.
func TestCronExplainRefuses(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"EXPR is missing", nil},
		{"EXPR is one argument; put it in quotes", []string{"0", "9", "*", "*", "*"}},
		{`minute "61"`, []string{"61 25 * * *"}},
		{`hour "25"`, []string{"61 25 * * *"}},
		{"never fires", []string{"0 0 30 2 *"}},
		{"must be followed by a zone", []string{"TZ=0"}},
		{"--tz: time zone \"Mars/Olympus\" is not known", []string{"@daily", "--tz", "Mars/Olympus"}},
		{"EXPR names a zone and --tz names Asia/Tokyo; keep one of the two", []string{"TZ=UTC @daily", "--tz", "Asia/Tokyo"}},
		{`--from "noon" is neither an instant`, []string{"@daily", "--from", "noon"}},
		{"-n 0 is outside 1 to 1000", []string{"@daily", "-n", "0"}},
		{"-n 1001 is outside", []string{"@daily", "-n", "1001"}},
		{`--job: "a b" is not a job name`, []string{"H * * * *", "--job", "a b"}},
		{"did you mean json", []string{"@daily", "-o", "jsn"}},
	} {
		code, stdout, stderr := call(nil, "", append([]string{"cron", "explain"}, tt.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "\nusage: escapement cron explain EXPR") {
			t.Errorf("%q: exit %d, %q, %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

// TestFirstShowing reads local times beside the changes of a clock.
func TestFirstShowing(t *testing.T) {
	for _, tt := range []struct{ zone, wall, want string }{
		{"UTC", "2026-03-29 02:30", "2026-03-29T02:30:00Z"},
		{"Europe/Berlin", "2026-03-29 01:59", "2026-03-29T00:59:00Z"},
		{"Europe/Berlin", "2026-03-29 02:30", "2026-03-29T00:30:00Z"}, // left out: before the gap
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-24T23:59:00Z"},
		{"Europe/Berlin", "2026-10-25 02:30", "2026-10-25T00:30:00Z"}, // twice: the first
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T02:00:00Z"},
		{"America/New_York", "2026-03-08 12:00", "2026-03-08T16:00:00Z"},
		{"America/New_York", "2026-11-01 00:59", "2026-11-01T04:59:00Z"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseFrom(tt.wall, zone, time.Time{})
		if err != nil || got.UTC().Format(time.RFC3339) != tt.want {
			t.Errorf("%s in %s is %v, %v, want %s", tt.wall, tt.zone, got.UTC(), err, tt.want)
		}
	}
}
