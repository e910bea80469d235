package scheduler

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

func drawDue(t *rapid.T) (s *jobs.Schedule, due []int64, now int64) {
	s = scheduleOf(rapid.SampledFrom([]string{
		"@every 100ms", "@every 1s", "@every 7s", "@every 90s", "* * * * * *", "*/7 * * * * *", "*/5 * * * *", "0 0 * * *",
		"CRON_TZ=Europe/Berlin */20 1-3 * * *", "CRON_TZ=Europe/Berlin 30 2 * * *",
	}).Draw(t, "schedule"))
	month := rapid.SampledFrom([]time.Month{time.March, time.October}).Draw(t, "month") // its last days, when Berlin sets its clocks
	cursor := s.Next(time.Date(2026, month, 22, 0, 0, rapid.IntRange(0, 700_000).Draw(t, "second"), 0, time.UTC))
	last := cursor
	for range rapid.IntRange(0, 60).Draw(t, "ticks behind the first") {
		last = s.Next(last)
	}
	now = last.UnixMilli() + rapid.SampledFrom([]int64{0, 1, 500, 9_999, 10_000, 10_001, 20_000}).Draw(t, "late")
	off := rapid.SampledFrom([]int64{0, 0, 0, 1, 99}).Draw(t, "cursor off the schedule")
	return s, dueFrom(s, cursor.UnixMilli()-off, now), now
}

func dueFrom(s *jobs.Schedule, cursor, now int64) (due []int64) {
	for at := cursor; at != 0 && at <= now; at = millis(s.Next(time.UnixMilli(at))) {
		due = append(due, at)
	}
	return due
}

// drawNear finds instants where something may change.
func drawNear(t *rapid.T, due []int64, now int64, what string) int64 {
	at := rapid.SampledFrom(append([]int64{due[0] - 60_000, now, now - 10_000, now + 60_000}, due...)).Draw(t, what)
	return at + int64(rapid.IntRange(-1, 1).Draw(t, what+", off by"))
}

func drawOutlook(t *rapid.T, due []int64, now int64) outlook {
	window := func(what string) ledger.Window {
		a, b := drawNear(t, due, now, what), drawNear(t, due, now, what)
		both := ledger.Window{From: min(a, b), To: max(a, b)}
		return rapid.SampledFrom([]ledger.Window{both, both, {}, {From: a}, {From: a, To: b}}).Draw(t, what)
	}
	return outlook{pause: window("pause"), busy: window("busy")}
}

func drawJob(t *rapid.T, due []int64, now int64) jobs.Job {
	within := time.Duration(max(0, now-drawNear(t, due, now, "start within"))) * time.Millisecond
	return jobs.Job{
		Overlap:     rapid.SampledFrom([]jobs.Overlap{jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapSkip, jobs.OverlapAllow}).Draw(t, "overlap"),
		CatchUp:     rapid.SampledFrom([]jobs.CatchUp{jobs.CatchUpLatest, jobs.CatchUpAll, jobs.CatchUpNone}).Draw(t, "catch_up"),
		CatchUpMax:  rapid.SampledFrom([]int{1, 2, 3, 10, 50}).Draw(t, "catch_up_max"),
		StartWithin: rapid.SampledFrom([]time.Duration{0, 0, within}).Draw(t, "start within"),
	}
}

func scheduleOf(expr string) *jobs.Schedule {
	s, err := jobs.ParseSchedule(expr, "")
	if err != nil {
		panic(err)
	}
	return s
}

// clockOf reads "12:05" or "12:05:30.001", of 2 March 2026; "" is 0.
func clockOf(text string) int64 {
	if text == "" {
		return 0
	}
	at, err := time.Parse("2006-01-02 15:04:05", "2026-03-02 "+text+":00"[:3*(2-strings.Count(text, ":"))])
	if err != nil {
		panic(err)
	}
	return at.UnixMilli()
}

func windowOf(text string) ledger.Window {
	from, to, _ := strings.Cut(text, "-")
	return ledger.Window{From: clockOf(from), To: clockOf(to)}
}

// stepText is a step as the cases spell it.
func stepText(s step) (text string) {
	clock := func(ms int64) string {
		if ms == 0 {
			return "never"
		}
		return strings.TrimSuffix(time.UnixMilli(ms).UTC().Format("15:04:05.999"), ":00")
	}
	for _, p := range s.passes {
		text += fmt.Sprintf("%s(%s) %s-%s x%d; ", p.Outcome, p.Reason, clock(p.First), clock(p.Last), p.Count)
	}
	if s.tick != 0 {
		text += fmt.Sprintf("run %s %s; ", clock(s.tick), s.trigger)
	}
	return text + "next " + clock(s.next)
}
