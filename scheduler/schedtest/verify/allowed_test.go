package verify

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// allowed changes of the healthy case give no finding. Each has a neighbour in the list of planted
// faults that differs by what excuses this one.
var allowed = []struct {
	name    string
	verdict Verdict // that the change gives one more tick, or more
	excused int
	spoil   func(s spoiler)
}{
	{"late, while something was wrong", Delayed, 0, func(s spoiler) {
		s.wrong(31*sec, 33*sec, false)
		s.shift("ten", "ten-4", 4*sec)
	}},
	{"late, not long after something was wrong", Delayed, 0, func(s spoiler) {
		s.wrong(5*sec, 10*sec, false)
		s.shift("ten", "ten-4", 4*sec)
	}},
	{"late behind a run by hand", Satisfied, 0, func(s spoiler) {
		// Granted just after the tick was due, it lasts as long as a late tick waits.
		s.shift("asked", "asked-2", 3*sec+ms)
		s.line("asked-2", End).At = after(15 * sec)
		s.row("asked", "asked-2").At = after(15 * sec).UnixMilli()
		s.shift("asked", "asked-3", 6*sec)
	}},
	{"missed, the first of two for long enough", Missed, 0, func(s spoiler) {
		s.wrong(30*sec, 44*sec, false)
		s.erase("ten", "ten-4")
		s.erase("ten", "ten-5")
		s.recordRange("ten", "ten-6", jobs.OutcomeMissed, "late", after(30*sec), after(40*sec), 2, after(45*sec))
	}},
	{"skipped behind a run that is recorded later", Skipped, 0, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-3", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"skipped behind a run by hand that is recorded later", Skipped, 0, func(s spoiler) {
		s.erase("asked", "asked-5")
		s.recordRange("asked", "asked-2", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"skipped behind a run in flight", Skipped, 0, func(s spoiler) {
		row := *s.row("ten", "ten-29")
		s.unwrite("ten-29", Start)
		s.unwrite("ten-29", End)
		s.erase("ten", "ten-30")
		s.recordRange("ten", "ten-29", jobs.OutcomeSkipped, "overlap", after(290*sec), after(290*sec), 1, after(291*sec))
		s.unrecord("ten", "ten-29")
		s.c.Books.Open = []ledger.Lease{lease(row, s.c.Read.Add(-20*sec))}
	}},
	{"skipped behind a run whose record Redis lost", Skipped, 0, func(s spoiler) {
		s.wrong(37*sec, 38*sec, true)
		s.unrecord("cron", "cron-3")
		s.erase("cron", "cron-4")
		s.line("cron-3", End).At = after(36 * sec)
		s.recordRange("cron", "cron-5", jobs.OutcomeSkipped, "overlap", after(35*sec), after(35*sec), 1, after(35*sec+20*ms))
	}},
	{"a run by hand, asked for at the very instant of a tick", Satisfied, 0, func(s spoiler) {
		s.row("asked", "asked-2").Tick = after(10 * sec).UnixMilli()
		s.line("asked-2", Start).Tick, s.line("asked-2", End).Tick = after(10*sec), after(10*sec)
	}},
	{"a run by hand in flight, asked for at the very instant of a tick", Satisfied, 0, func(s spoiler) {
		l := lease(*s.row("ten", "ten-30"), s.c.Read.Add(-20*sec))
		l.Run, l.Trigger = "by hand", manual
		s.c.Books.Open = []ledger.Lease{l}
	}},
	{"abandoned, its node had died", Satisfied, 0, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false, "n8", s.row("ten", "ten-4").NodeName)
		s.end("ten", "ten-4", jobs.OutcomeAbandoned)
	}},
	{"abandoned before its function was called", Unstarted, 0, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false)
		s.end("ten", "ten-4", jobs.OutcomeAbandoned)
		s.unwrite("ten-4", Start)
		s.unwrite("ten-4", End)
	}},
	{"lost, its node was cut off", Satisfied, 0, func(s spoiler) {
		s.wrong(29*sec, 30*sec, false, s.row("ten", "ten-4").Node)
		s.end("ten", "ten-4", jobs.OutcomeLost)
	}},
	{"cancelled by a drain", Satisfied, 0, func(s spoiler) {
		s.c.Disturbed = []Disturbance{{Span: Span{after(30 * sec), after(31 * sec)}, What: "drain"}}
		s.end("ten", "ten-4", jobs.OutcomeCancelled)
	}},
	{"failed and timed out", Satisfied, 0, func(s spoiler) {
		s.end("ten", "ten-4", jobs.OutcomeFailed)
		s.end("ten", "ten-5", jobs.OutcomeTimedOut)
	}},
	{"the last tick waits, and is young", Pending, 0, func(s spoiler) {
		s.erase("cron", "cron-30")
		s.c.Books.Cursor["cron"] = after(295 * sec)
		s.c.Read = after(296 * sec)
	}},
	{"the last tick waits, as something went wrong just after it", Pending, 0, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = after(290 * sec)
		s.wrong(100*sec, 101*sec, false)
		s.wrong(291*sec, 340*sec, false)
	}},
	{"the last tick waits, and there were faults before and after it", Pending, 0, func(s spoiler) {
		s.erase("ten", "ten-30")
		s.c.Books.Cursor["ten"] = after(290 * sec)
		s.wrong(250*sec, 300*sec, false)
		s.wrong(321*sec, 330*sec, false)
		s.wrong(351*sec, 0, false)
	}},
	{"a run is in flight as long as something is wrong", Satisfied, 0, func(s spoiler) {
		row := *s.row("ten", "ten-30")
		s.unrecord("ten", "ten-30")
		s.c.Books.Open = []ledger.Lease{lease(row, after(290*sec))}
		s.wrong(309*sec, 325*sec, false)
	}},
	{"the last tick is granted, and young", Pending, 0, func(s spoiler) {
		s.c.Books.Open = []ledger.Lease{lease(*s.row("ten", "ten-30"), s.c.Read.Add(-20*sec))}
		s.erase("ten", "ten-30")
	}},
	{"the history does not reach back", Trimmed, 0, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.unrecord("ten", "ten-3")
		s.c.Books.TrimmedBefore = map[string]time.Time{"ten": after(31 * sec)}
	}},
	{"a second run after Redis forgot the first", Satisfied, 1, func(s spoiler) {
		s.wrong(30*sec, 31*sec, true)
		s.again("ten", "ten-4", "again", sec)
	}},
	{"nothing of a tick around a loss", Vanished, 1, func(s spoiler) {
		s.wrong(50*sec, 51*sec, true)
		s.erase("ten", "ten-4")
	}},
	{"nothing of a tick long before a loss, but something was wrong then", Vanished, 1, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false)
		s.wrong(200*sec, 201*sec, true)
		s.erase("ten", "ten-4")
	}},
	{"a contradiction around a loss", Satisfied, 1, func(s spoiler) {
		s.wrong(11*sec, 12*sec, true)
		s.recordRange("ten", "ten-4", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"a run that succeeded without an end, around a loss", Satisfied, 1, func(s spoiler) {
		s.wrong(271*sec, 272*sec, true)
		s.unwrite("ten-30", End)
	}},
	{"all that was recorded is lost", Satisfied, 0, func(s spoiler) {
		s.wrong(299*sec, 299*sec+ms, true)
		clear(s.c.Books.Rows)
	}},
	{"a request that came to nothing", Satisfied, 0, func(s spoiler) { s.c.Jobs[2].Asked = append(s.c.Jobs[2].Asked, after(120*sec)) }},
	{"runs beside each other, by policy", Satisfied, 0, func(s spoiler) {
		s.c.Jobs[1].Overlaps = true
		s.outlive("cron-4", "cron-5")
	}},
	{"runs that write no end", Satisfied, 0, func(s spoiler) {
		s.c.Jobs[0].StartsOnly = true
		s.unwrite("ten-4", End)
	}},
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range allowed {
		t.Run(tt.name, func(t *testing.T) {
			c := healthy(t)
			tt.spoil(spoiler{t, &c})
			if r := Check(c); len(r.Findings) > 0 || r.Verdicts[tt.verdict] == 0 || r.Excused != tt.excused || r.Ticks != 90 {
				t.Errorf("want a tick that is %s and %d excused: %s", tt.verdict, tt.excused, show(r))
			}
		})
	}
}
