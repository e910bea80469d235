package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
)

// The offsets are a format: stored schedules depend on them.
func TestJitterNeverChanges(t *testing.T) {
	for _, c := range []struct{ name, jitter, plus string }{
		{"report", "30s", "28.106s"}, {"settle-orders", "30s", "1.577s"}, {"report", "1ms", "0s"}, {"report", "24h", "20h50m28.106s"}, {"a", "500ms", "448ms"},
	} {
		s := jitterParsed(t, c.name, "@daily jitter "+c.jitter)
		if got := strings.TrimPrefix(s.Resolved(), "@daily plus "); got != c.plus {
			t.Errorf("%s %s: %s, want %s", c.name, c.jitter, got, c.plus)
		}
	}
}

// A job's jitter moves the ticks of its schedule by one offset, and nothing else, and the
// schedule's text has the offset.
func TestJitterMovesTheTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := jobs.Job{
			Name:     rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "name"),
			Schedule: rapid.SampledFrom([]string{"* * * * *", "@every 100ms", "@every 7h", "H H * * *", "30 2 * * *", "59 23 L * *"}).Draw(t, "schedule"),
			TimeZone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Pacific/Apia"}).Draw(t, "zone"),
			Jitter:   rapid.SampledFrom([]time.Duration{time.Millisecond, 30 * time.Second, time.Hour, 24 * time.Hour}).Draw(t, "jitter"),
		}
		if rapid.Bool().Draw(t, "bounded") {
			j.Except, j.EndAt = []string{"2026-03-28"}, time.Date(2026, 3, 30, 23, 59, 0, 0, time.UTC)
		}
		moved, err := j.ParsedSchedule()
		if err != nil {
			t.Fatal(err)
		}
		plain := j
		plain.Jitter = 0
		s, err := plain.ParsedSchedule()
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)
		_, offset, _ := strings.Cut(moved.Resolved(), " plus ")
		plus, err := time.ParseDuration(offset)
		if err != nil || plus < 0 || plus >= j.Jitter {
			t.Fatalf("%s is %s", moved, moved.Resolved())
		}
		again := jitterParsed(t, j.Name, moved.String())
		tick, other := start, start.Add(plus)
		for range 40 {
			want := s.Next(tick)
			got, read := moved.Next(other), again.Next(other)
			if want.IsZero() && got.IsZero() && read.IsZero() {
				return
			}
			if !got.Equal(want.Add(plus)) || !read.Equal(got) {
				t.Fatalf("%s: after %v comes %v, read back %v; want %v and %v", moved, other, got, read, want, plus)
			}
			tick, other = want, got
		}
	})
}

// Over many names the offsets fill the range, evenly.
func TestJitterSpreads(t *testing.T) {
	const names, parts = 3000, 30
	var seen [parts]int
	for n := range names {
		_, text, _ := strings.Cut(jitterParsed(t, fmt.Sprint("job-", n), "@hourly jitter 30s").Resolved(), " plus ")
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d >= 30*time.Second {
			t.Fatalf("%q", text)
		}
		seen[d/time.Second]++
	}
	for i, n := range seen {
		if n < names/parts/2 || n > names/parts*2 {
			t.Errorf("%d of %d in second %d", n, names, i)
		}
	}
}

func TestJitterRefuses(t *testing.T) {
	for _, c := range []struct {
		job         jobs.Job
		field, want string
	}{
		{jobs.Job{Schedule: "@daily", Jitter: -time.Second}, "jitter", "-1s is negative; use 0 or more"},
		{jobs.Job{Schedule: "@daily", Jitter: 25 * time.Hour}, "jitter", "25h is outside 0s to 24h"},
		{jobs.Job{Schedule: "@daily", Jitter: 1500 * time.Microsecond}, "jitter", "1.5ms is not a whole number of milliseconds"},
		{jobs.Job{After: []string{"other"}, Jitter: time.Second}, "jitter", "is not used: a job with after has no schedule"},
		{jobs.Job{Schedule: "@daily jitter 30s"}, "schedule", "has jitter 30s; write bounds as except"},
		{jobs.Job{Schedule: "@daily jitter 0s"}, "schedule", "jitter: 0s is outside 1ms to 24h0m0s"},
		{jobs.Job{Schedule: "@daily jitter soon"}, "schedule", `jitter: "soon" is not a duration; use a number with ms, s, m or h`},
	} {
		j := c.job
		j.Name, j.Func = "report", nothing
		err := j.Validate()
		if err == nil || fmt.Sprint(faultsOf(t, err)) != "["+c.field+"]" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s: %s", c.job, err, c.field, c.want)
		}
	}
	if _, err := cron.Parse("@daily jitter 30s", ""); err == nil || !strings.Contains(err.Error(), "jitter: needs the job's name") {
		t.Errorf("without a name: %v", err)
	}
}

func jitterParsed(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, name, expr string) *cron.Schedule {
	t.Helper()
	s, err := cron.ParseFor(name, expr, "")
	if err != nil {
		t.Fatalf("%q for %q: %v", expr, name, err)
	}
	return s
}
