package agenda

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Instants are times of one day; the cursor is 12:00 and a tick each minute, unless a case differs.
var planCases = []struct {
	name                             string
	job                              jobs.Job
	cursor, pause, busy, now, expect string
}{
	{"not due", jobs.Job{}, "12:01", "", "", "12:00:59.999", "next 12:01"},
	{"on time", jobs.Job{}, "", "", "", "12:00", "run 12:00 schedule; next 12:01"},
	{"late within the bound", jobs.Job{}, "", "", "", "12:00:10", "run 12:00 schedule; next 12:01"},
	{"late beyond it", jobs.Job{}, "", "", "", "12:00:10.001", "run 12:00 catch_up; next 12:01"},
	{"late within it, newer ones due", jobs.Job{Schedule: "*/3 * * * * *"}, "", "", "", "12:00:09.9", "run 12:00 schedule; next 12:00:03"},
	{"latest, the newest on time", jobs.Job{}, "", "", "", "12:05", "missed(late) 12:00-12:04 x5; run 12:05 catch_up; next 12:06"},
	{"latest, the cursor not a tick here", jobs.Job{}, "12:00:20", "", "", "12:02", "missed(late) 12:00:20-12:01 x2; run 12:02 catch_up; next 12:03"},
	{"none, some in time", jobs.Job{CatchUp: jobs.CatchUpNone, Schedule: "@every 4s"}, "", "", "", "12:01", "missed(late) 12:00-12:00:48 x13; run 12:00:52 schedule; next 12:00:56"},
	{"all", jobs.Job{CatchUp: jobs.CatchUpAll, CatchUpMax: 10}, "", "", "", "12:05:30", "run 12:00 catch_up; next 12:01"},
	{"all, too many", jobs.Job{CatchUp: jobs.CatchUpAll, CatchUpMax: 2}, "", "", "", "12:05:30", "missed(catch_up_max) 12:00-12:03 x4; run 12:04 catch_up; next 12:05"},
	{"all, those in time do not count", jobs.Job{CatchUp: jobs.CatchUpAll, CatchUpMax: 2}, "", "", "", "12:05", "missed(catch_up_max) 12:00-12:02 x3; run 12:03 catch_up; next 12:04"},
	{"paused", jobs.Job{}, "", "11:00-", "", "12:05", "paused(paused) 12:00-12:05 x6; next 12:06"},
	{"paused for a while", jobs.Job{}, "", "11:00-12:03", "", "12:03:05", "paused(paused) 12:00-12:02 x3; run 12:03 schedule; next 12:04"},
	{"paused later", jobs.Job{}, "", "12:00:01-", "", "12:02", "run 12:00 catch_up; next 12:01"},
	{"a gap before, in and behind a pause", jobs.Job{}, "", "12:02-12:04", "", "12:06", "missed(late) 12:00-12:01 x2; paused(paused) 12:02-12:03 x2; missed(late) 12:04-12:05 x2; run 12:06 catch_up; next 12:07"},
	{"busy between two ticks", jobs.Job{Overlap: jobs.OverlapQueue}, "", "", "12:01:10-12:01:50", "12:03", "missed(late) 12:00-12:01 x2; missed(late) 12:02-12:02 x1; run 12:03 catch_up; next 12:04"},
	{"paused between two ticks", jobs.Job{}, "", "12:01:10-12:01:50", "", "12:03", "missed(late) 12:00-12:01 x2; missed(late) 12:02-12:02 x1; run 12:03 catch_up; next 12:04"},
	{"start within", jobs.Job{StartWithin: 90 * time.Second}, "", "", "", "12:02:30", "missed(start_within) 12:00-12:00 x1; missed(late) 12:01-12:01 x1; run 12:02 catch_up; next 12:03"},
	{"start within, nothing left", jobs.Job{StartWithin: time.Second}, "", "", "", "12:02:01.001", "missed(start_within) 12:00-12:02 x3; next 12:03"},
	{"start within, busy", jobs.Job{StartWithin: 90 * time.Second, Overlap: jobs.OverlapQueue}, "", "", "11:59:30-12:04", "12:04:10", "missed(start_within) 12:00-12:02 x3; run 12:03 schedule; next 12:04"},
	{"queue, and catch_up has no say", jobs.Job{Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpNone}, "", "", "11:59-12:03", "12:03:20", "skipped(overlap) 12:00-12:01 x2; run 12:02 schedule; next 12:03"},
	{"replace", jobs.Job{Overlap: jobs.OverlapReplace}, "", "", "11:59-", "12:01", "skipped(overlap) 12:00-12:00 x1; run 12:01 schedule; next 12:02"},
	{"skip", jobs.Job{}, "", "", "11:59-", "12:01", "missed(late) 12:00-12:00 x1; run 12:01 catch_up; next 12:02"},
	{"allow", jobs.Job{Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpNone}, "", "", "11:59-", "12:01", "missed(late) 12:00-12:00 x1; run 12:01 schedule; next 12:02"},
	{"missed for a busy tick", jobs.Job{Overlap: jobs.OverlapQueue}, "", "", "12:00:30-12:02:30", "12:06", "missed(late) 12:00-12:00 x1; skipped(overlap) 12:01-12:01 x1; run 12:02 schedule; next 12:03"},
	{"all, before a busy window", jobs.Job{Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, CatchUpMax: 3}, "", "", "12:00:30-12:02:30", "12:04:30", "run 12:00 catch_up; next 12:01"},
	{"all, too many before a busy window", jobs.Job{Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, CatchUpMax: 2}, "", "", "12:00:30-12:02:30", "12:04:30", "missed(catch_up_max) 12:00-12:00 x1; skipped(overlap) 12:01-12:01 x1; run 12:02 schedule; next 12:03"},
	{"busy, then paused", jobs.Job{Overlap: jobs.OverlapQueue}, "", "12:02-", "11:59-12:05", "12:06", "skipped(overlap) 12:00-12:00 x1; run 12:01 schedule; next 12:02"},
	{"paused while busy", jobs.Job{Overlap: jobs.OverlapQueue}, "", "12:01-12:03", "11:59-12:05", "12:06", "skipped(overlap) 12:00-12:00 x1; paused(paused) 12:01-12:02 x2; skipped(overlap) 12:03-12:03 x1; run 12:04 schedule; next 12:05"},
	{"all there is", jobs.Job{Overlap: jobs.OverlapQueue, StartWithin: 450 * time.Second}, "", "12:04-12:05", "12:06-", "12:10", "missed(start_within) 12:00-12:02 x3; missed(late) 12:03-12:03 x1; paused(paused) 12:04-12:04 x1; missed(late) 12:05-12:05 x1; skipped(overlap) 12:06-12:09 x4; run 12:10 schedule; next 12:11"},
}

func TestPlan(t *testing.T) {
	for _, c := range planCases {
		s, cursor := scheduleOf(cmp.Or(c.job.Schedule, "* * * * *")), clockOf(cmp.Or(c.cursor, "12:00"))
		got := stepText(plan(c.job, s, cursor, windows{pause: windowOf(c.pause), busy: windowOf(c.busy)}, clockOf(c.now)))
		if got != c.expect {
			t.Errorf("%s:\n got  %s\n want %s", c.name, got, c.expect)
		}
	}
}

func TestPlanOfTheLastTicksThereAre(t *testing.T) {
	last, want := time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC).UnixMilli(), "missed(late) 23:58-23:59 x2; next never"
	if got := stepText(plan(jobs.Job{CatchUp: jobs.CatchUpNone}, scheduleOf("* * * * *"), last-60_000, windows{}, last+90_000)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The clever plan against the obvious one, which looks at each tick by itself; and, whatever the
// obvious one returns, against the ledger's checks of a claim.
func TestPlanAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, due, now := drawDue(t)
		for range 100 {
			j, o := drawJob(t, due, now), drawWindows(t, due, now)
			got, want := plan(j, s, due[0], o, now), plainPlan(j, due, s, o, now)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, windows %v, %d at %d:\n got  %s\n want %s", s, o, due[0], now, stepText(got), stepText(want))
			}
			fitsClaim(t, j, s, due, o, got)
		}
	})
}

// However a job is held and paused on the way, its cursor comes to now, over each tick once.
func TestPlanAccountsForEveryTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, due, now := drawDue(t)
		j, o := drawJob(t, due, now), drawWindows(t, due, now)
		for end := now + 30_000; len(due) > 0; {
			p := plan(j, s, due[0], o, now)
			fitsClaim(t, j, s, due, o, p)
			if p.tick != 0 {
				ended := min(end, now+int64(rapid.IntRange(0, 5_000).Draw(t, "run took")))
				o.busy, now = ledger.Window{From: now, To: ended}, ended
			} else if rapid.Bool().Draw(t, "other windows") {
				o = drawWindows(t, due, now)
			}
			due = dueFrom(s, p.next, now)
		}
	})
}

// fitsClaim compares a step with the due ticks: none left out, none twice, and within a claim's
// bounds.
func fitsClaim(t *rapid.T, j jobs.Job, s *jobs.Schedule, due []int64, o windows, got step) {
	t.Helper()
	at, ticks := 0, append(due[:len(due):len(due)], work.Millis(s.Next(time.UnixMilli(due[len(due)-1]))))
	queued := func(t int64) bool {
		return (j.Overlap == jobs.OverlapQueue || j.Overlap == jobs.OverlapReplace) && o.busy.Holds(t) && !o.pause.Holds(t)
	}
	for _, p := range got.passes {
		n := int(p.Count)
		if n < 1 || at+n >= len(ticks) || p.First != ticks[at] || p.Last != ticks[at+n-1] || p.Next != ticks[at+n] {
			t.Fatalf("%s: one pass holds other ticks than the %d that come next", stepText(got), n)
		}
		if over := p.First < o.pause.From && o.pause.From <= p.Last; over ||
			p.Outcome == jobs.OutcomeSkipped && (!queued(p.First) || !queued(p.Last) || !queued(got.tick)) {
			t.Fatalf("%s: reaches over a pause, or skips ticks for no other", stepText(got))
		}
		at += n
	}
	if got.tick != 0 {
		if at == len(due) || got.tick != due[at] || queued(got.tick) && slices.ContainsFunc(due[at+1:], queued) {
			t.Fatalf("%s: does not run the tick behind its passes, or one that is not the latest of the busy", stepText(got))
		}
		at++
	}
	if at == 0 || got.next != ticks[at] || len(got.passes) > 6 {
		t.Fatalf("%s: ends after %d of %d ticks, with %d passes", stepText(got), at, len(due), len(got.passes))
	}
}

// plainPlan is plan, by looking at all ticks for each.
func plainPlan(j jobs.Job, due []int64, s *jobs.Schedule, o windows, now int64) step {
	expired := func(t int64) bool { return j.StartWithin > 0 && now-t > j.StartWithin.Milliseconds() }
	queued := j.Overlap == jobs.OverlapQueue || j.Overlap == jobs.OverlapReplace
	eligible := func(t int64) bool { return !o.pause.Holds(t) && !expired(t) }
	busy := func(t int64) bool { return eligible(t) && queued && o.busy.Holds(t) }
	plain := func(t int64) bool { return eligible(t) && !busy(t) }
	late := func(t int64) bool { return now-t > 10_000 }
	owed := func(t int64) bool { return plain(t) && late(t) }
	gap := slices.ContainsFunc(due, plain) && late(due[slices.IndexFunc(due, plain)])
	later := func(t int64, which func(int64) bool) int { // how many
		return len(slices.DeleteFunc(slices.Clone(due), func(u int64) bool { return u <= t || !which(u) }))
	}
	fateOf := func(t int64) decision {
		switch {
		case o.pause.Holds(t):
			return decision{outcome: jobs.OutcomePaused, reason: "paused"}
		case expired(t):
			return decision{outcome: jobs.OutcomeMissed, reason: "start_within"}
		case busy(t) && later(t, busy) > 0:
			return decision{outcome: jobs.OutcomeSkipped, reason: "overlap"}
		case busy(t) || !gap:
			return decision{trigger: jobs.TriggerSchedule}
		case j.CatchUp == jobs.CatchUpLatest && later(t, eligible) > 0, j.CatchUp == jobs.CatchUpNone && late(t):
			return decision{outcome: jobs.OutcomeMissed, reason: "late"}
		case j.CatchUp == jobs.CatchUpAll && late(t) && later(t, owed) >= j.CatchUpMax:
			return decision{outcome: jobs.OutcomeMissed, reason: "catch_up_max"}
		case j.CatchUp == jobs.CatchUpLatest || late(t):
			return decision{trigger: jobs.TriggerCatchUp}
		}
		return decision{trigger: jobs.TriggerSchedule}
	}
	waits, out, last := ledger.Window{}, step{}, decision{}
	if queued {
		waits = o.busy
	}
	for _, t := range due {
		f := fateOf(t)
		out.next = work.Millis(s.Next(time.UnixMilli(t)))
		if f.outcome == 0 {
			out.tick, out.trigger = t, f.trigger
			return out
		}
		over := func(w ledger.Window) bool { return out.passes[len(out.passes)-1].Last < w.From && w.From <= t }
		if f != last || over(o.pause) || f.givenUp() && over(waits) {
			out.passes, last = append(out.passes, ledger.SkippedRange{Outcome: f.outcome, Reason: f.reason, First: t}), f
		}
		p := &out.passes[len(out.passes)-1]
		p.Last, p.Next, p.Count = t, out.next, p.Count+1
	}
	return out
}

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
	for at := cursor; at != 0 && at <= now; at = work.Millis(s.Next(time.UnixMilli(at))) {
		due = append(due, at)
	}
	return due
}

// drawNear finds instants where something may change.
func drawNear(t *rapid.T, due []int64, now int64, what string) int64 {
	at := rapid.SampledFrom(append([]int64{due[0] - 60_000, now, now - 10_000, now + 60_000}, due...)).Draw(t, what)
	return at + int64(rapid.IntRange(-1, 1).Draw(t, what+", off by"))
}

func drawWindows(t *rapid.T, due []int64, now int64) windows {
	window := func(what string) ledger.Window {
		a, b := drawNear(t, due, now, what), drawNear(t, due, now, what)
		both := ledger.Window{From: min(a, b), To: max(a, b)}
		return rapid.SampledFrom([]ledger.Window{both, both, {}, {From: a}, {From: a, To: b}}).Draw(t, what)
	}
	return windows{pause: window("pause"), busy: window("busy")}
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
	s, err := cron.Parse(expr, "")
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

// TestBusyUntil: the end of a busy window may be ahead of the node's clock by as much as that may
// be wrong. A window that reaches farther was stored by a clock that was taken back.
func TestBusyUntil(t *testing.T) {
	const now, skew = 1_000_000, time.Second
	for to, want := range map[int64]int64{0: -1, now - 5: now - 6, now + 1: now, now + 1001: now + 1000, now + 1002: now, now + 3_600_000: now} {
		if got := (windows{busy: ledger.Window{From: now - 10_000, To: to}}).busyUntil(now, skew); got != want {
			t.Errorf("busy until %d: %d, want %d", to, got, want)
		}
	}
}
