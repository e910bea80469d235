package scheduler

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

func TestPlan(t *testing.T) {
	minutely, err := jobs.ParseSchedule("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	const minute = 60_000
	for name, c := range map[string]struct {
		cursor, now int64
		want        step
	}{
		"on time":                   {5 * minute, 5 * minute, step{tick: 5 * minute, next: 6 * minute, trigger: jobs.TriggerSchedule}},
		"late within the bound":     {5 * minute, 5*minute + 10_000, step{tick: 5 * minute, next: 6 * minute, trigger: jobs.TriggerSchedule}},
		"late beyond it, alone":     {5 * minute, 5*minute + 10_001, step{tick: 5 * minute, next: 6 * minute, trigger: jobs.TriggerCatchUp}},
		"one missed":                {5 * minute, 6*minute + 1, step{until: 5 * minute, missed: 1, tick: 6 * minute, next: 7 * minute, trigger: jobs.TriggerCatchUp}},
		"a gap":                     {5 * minute, 65 * minute, step{until: 64 * minute, missed: 60, tick: 65 * minute, next: 66 * minute, trigger: jobs.TriggerCatchUp}},
		"a gap, next not due by ms": {5 * minute, 65*minute - 1, step{until: 63 * minute, missed: 59, tick: 64 * minute, next: 65 * minute, trigger: jobs.TriggerCatchUp}},
	} {
		if got := plan(minutely, c.cursor, c.now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The clever plan against the obvious one: walk tick by tick.
func TestPlanAccountsForEveryTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom([]string{"* * * * * *", "*/7 * * * * *", "@every 90s", "*/5 * * * *", "0 0 * * *"}).Draw(t, "schedule")
		s, err := jobs.ParseSchedule(expr, "")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		cursor := s.Next(start.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "from")) * time.Second)).UnixMilli()
		now := cursor + int64(rapid.IntRange(0, 3_600_000).Draw(t, "late"))
		got := plan(s, cursor, now)
		var due []int64
		for at := cursor; at <= now; at = s.Next(time.UnixMilli(at)).UnixMilli() {
			due = append(due, at)
		}
		tick := due[len(due)-1]
		if now-cursor <= 10_000 {
			tick = cursor
		}
		passed := 0
		var until int64
		for _, at := range due {
			if at < tick {
				passed, until = passed+1, at
			}
		}
		next := s.Next(time.UnixMilli(tick)).UnixMilli()
		if got.tick != tick || got.next != next || got.missed != int64(passed) || got.until != until {
			t.Fatalf("%s from %d at %d: %+v, want tick %d next %d missed %d until %d", expr, cursor, now, got, tick, next, passed, until)
		}
	})
}
