package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

func mustCron(t testing.TB, expr, zone string) Schedule {
	t.Helper()
	s, err := Cron(expr, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parseTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestOracleByHand has ticks that a person can see are right.
func TestOracleByHand(t *testing.T) {
	for _, tt := range []struct {
		expr, zone, from, until string
		want                    string // the ticks, without their zone
	}{
		{"*/20 * * * * *", "", "2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z", "12:00:00 12:00:20 12:00:40"},
		{"*/20 * * * * *", "", "2026-03-01T12:00:00.001Z", "2026-03-01T12:00:40.001Z", "12:00:20 12:00:40"},
		{"5/25 * * * * *", "", "2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z", "12:00:05 12:00:30 12:00:55"},
		{"1-7/3,50 0 12 * * *", "", "2026-03-01T11:59:00Z", "2026-03-01T12:02:00Z", "12:00:01 12:00:04 12:00:07 12:00:50"},
		{"30 * * * *", "", "2026-03-01T12:00:00Z", "2026-03-01T14:00:00Z", "12:30:00 13:30:00"},
		{"@hourly", "", "2026-03-01T12:00:00Z", "2026-03-01T14:00:01Z", "12:00:00 13:00:00 14:00:00"},
		{"@every 40s", "", "1970-01-01T00:00:01Z", "1970-01-01T00:02:00Z", "00:00:40 00:01:20"},
		{"@every 700ms", "", "1969-12-31T23:59:59Z", "1970-01-01T00:00:01Z", "23:59:59.3 00:00:00 00:00:00.7"},
		{"0 12 * MAR Sun", "", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "12:00:00"},
		{"0 12 * 4 *", "", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", ""},
		{"0 12 2 * sun", "", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z", "12:00:00 12:00:00"}, // either day field
		{"0 12 2 * *", "", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z", "12:00:00"},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "", "2026-03-01T00:00:00Z", "2026-03-01T12:00:00Z", "00:00:00"},
		{"0 9 * * *", "Asia/Tokyo", "2026-03-01T00:00:00Z", "2026-03-01T12:00:00Z", "00:00:00"},
		// Berlin, 29 March: 02:00 to 03:00 is left out, at 01:00 UTC; 25 October: it comes twice.
		{"15,45 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", "01:00:00"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z", ""},
		{"15,45 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "00:15:00 00:45:00"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "00:00:00 00:30:00 01:00:00 01:30:00"},
		{"15,45 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T12:00:00Z", ""}, // begun inside the repeated hour
		// Kwajalein went back by 23 hours at 13:00 UTC: it was half past twelve at 01:30 UTC before.
		{"30 12 * * *", "Pacific/Kwajalein", "1969-09-30T20:00:00Z", "1969-10-01T12:00:00Z", ""},
		{"30 12 * * *", "Pacific/Kwajalein", "1969-09-30T01:00:00Z", "1969-09-30T12:00:00Z", "01:30:00"},
	} {
		var got []string
		for _, tick := range mustCron(t, tt.expr, tt.zone).Ticks(parseTime(t, tt.from), parseTime(t, tt.until)) {
			got = append(got, tick.Format("15:04:05.999"))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s from %s: %v, want %s", tt.expr, tt.zone, tt.from, got, tt.want)
		}
	}
}

func TestOracleRefuses(t *testing.T) {
	for _, expr := range []string{"", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "*/0 * * * *",
		"*/x * * * *", "5-1 * * * *", "1- * * * *", "a * * * *", "1,,2 * * * *", "@every", "@every x", "@every 50ms", "@every 100500us", "@often", "CRON_TZ=Nowhere/At * * * * *"} {
		if s, err := Cron(expr, ""); err == nil {
			t.Errorf("%q: %v", expr, s)
		}
	}
}

var places = []struct{ zone, near string }{
	{"", "2026-02-28T12:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"America/New_York", "2031-11-02T06:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"},
	{"Asia/Kolkata", "2026-06-15T03:00:00Z"},
}

// drawExpr draws an expression whose ticks are neither too rare for a walk nor all seconds.
func drawExpr(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "special") == 0 {
		return rapid.SampledFrom([]string{"@hourly", "@daily", "@weekly", "@midnight", "@every 90s", "@every 7777ms", "@every 1h30m", "@every 100s"}).Draw(t, "descriptor")
	}
	value := func(i int) string {
		f := fields[i]
		v := rapid.IntRange(f.lo, f.hi).Draw(t, "value")
		if f.words != nil && rapid.Bool().Draw(t, "word") {
			return f.words[v-f.lo]
		}
		return fmt.Sprint(v)
	}
	var out []string
	for i := range fields {
		f := fields[i]
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			a := rapid.IntRange(f.lo, f.hi).Draw(t, "a")
			b := rapid.IntRange(a, f.hi).Draw(t, "b")
			step := rapid.IntRange(1, f.hi-f.lo+1).Draw(t, "step")
			parts = append(parts, rapid.SampledFrom([]string{
				value(i), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d-%d/%d", a, b, step), fmt.Sprintf("%d/%d", a, step),
				fmt.Sprintf("*/%d", step), "*", "?",
			}).Draw(t, "part"))
		}
		if i >= 3 && rapid.IntRange(0, 2).Draw(t, "free") > 0 {
			parts = []string{"*"}
		}
		out = append(out, strings.Join(parts, ","))
	}
	if rapid.IntRange(0, 3).Draw(t, "five") == 0 {
		out = out[1:]
	}
	return strings.Join(out, " ")
}

// TestOracleAgreesWithTheParser holds the walk against the schedules that the program uses: two
// readings of the same text that share no code.
func TestOracleAgreesWithTheParser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := drawExpr(t)
		place := rapid.SampledFrom(places).Draw(t, "place")
		other, err := jobs.ParseSchedule(expr, place.zone)
		if err != nil {
			if strings.Contains(err.Error(), "never fires") {
				t.Skip("such as 31 February")
			}
			t.Fatal(err)
		}
		s, err := Cron(expr, place.zone)
		if err != nil {
			t.Fatal(err)
		}
		near, _ := time.Parse(time.RFC3339, place.near)
		from := near.Add(-time.Duration(rapid.Int64Range(0, 5*3600_000).Draw(t, "before ms")) * time.Millisecond)
		until := near.Add(time.Duration(rapid.Int64Range(0, 5*3600_000).Draw(t, "after ms")) * time.Millisecond)
		var want []time.Time
		for at := other.Next(from.Add(-1)); !at.IsZero() && at.Before(until); at = other.Next(at) {
			want = append(want, at)
		}
		if got := s.Ticks(from, until); !slices.Equal(got, want) {
			t.Fatalf("%s %s from %v to %v: %v, the parser has %v", expr, place.zone, from, until, got, want)
		}
	})
}

// What an H stands for is taken from package jobs; the walk is the oracle's own.
func TestScheduleOfResolvesHashes(t *testing.T) {
	for _, expr := range []string{"H * * * *", "H/4 * * * * *", "H H(1-5) * * *"} {
		d := jobs.Definition{Name: "report", Schedule: expr}
		s, err := ScheduleOf(d)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := jobs.ParseScheduleFor("report", expr, "")
		if err != nil {
			t.Fatal(err)
		}
		from := parseTime(t, "2026-03-01T12:00:00Z")
		until := from.Add(26 * time.Hour)
		var want []time.Time
		for at := parsed.Next(from.Add(-1)); at.Before(until); at = parsed.Next(at) {
			want = append(want, at)
		}
		if got := s.Ticks(from, until); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: %d ticks, want %d", expr, len(got), len(want))
		}
	}
}
