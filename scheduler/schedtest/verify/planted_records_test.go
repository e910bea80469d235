package verify

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// plantedRecords are faults of what is recorded as not run, and why.
var plantedRecords = []fault{
	{"a tick ran and is recorded as skipped", KindContradiction, func(s spoiler) {
		s.recordRange("ten", "ten-4", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"a tick is recorded twice as not run", KindContradiction, func(s spoiler) {
		s.wrong(30*sec, 40*sec, false)
		s.erase("ten", "ten-4")
		for range 2 {
			s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(30*sec), after(30*sec), 1, after(41*sec))
		}
	}},
	{"a run is recorded twice", KindContradiction, func(s spoiler) {
		s.c.Books.Rows["ten"] = append(s.c.Books.Rows["ten"], *s.row("ten", "ten-4"))
	}},
	{"a run by hand is recorded twice", KindContradiction, func(s spoiler) {
		s.c.Books.Rows["asked"] = append(s.c.Books.Rows["asked"], *s.row("asked", "asked-2"))
	}},
	{"a run has ended and is in flight", KindContradiction, func(s spoiler) {
		s.c.Books.Open = []ledger.Lease{lease(*s.row("ten", "ten-4"), s.c.Read.Add(-sec))}
	}},
	{"missed, and nothing was wrong", KindUntrue, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(30*sec), after(30*sec), 1, after(41*sec))
	}},
	{"missed, and hardly late", KindUntrue, func(s spoiler) {
		s.wrong(30*sec, 40*sec, false)
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "late", after(30*sec), after(30*sec), 1, after(40*sec))
	}},
	{"missed for a reason nobody knows", KindUntrue, func(s spoiler) {
		s.wrong(30*sec, 40*sec, false)
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeMissed, "mood", after(30*sec), after(30*sec), 1, after(41*sec))
	}},
	{"skipped, and no run was going", KindUntrue, func(s spoiler) {
		s.erase("cron", "cron-4")
		s.recordRange("cron", "cron-5", jobs.OutcomeSkipped, "overlap", after(35*sec), after(35*sec), 1, after(35*sec+20*ms))
	}},
	{"skipped behind a run by hand that began later", KindUntrue, func(s spoiler) {
		s.erase("asked", "asked-5")
		s.recordRange("asked", "asked-6", jobs.OutcomeSkipped, "overlap", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"skipped behind a run whose end is recorded before", KindUntrue, func(s spoiler) {
		s.lasts("cron", "cron-3", 36*sec)
		s.skip("cron", "cron-4", "cron-5", 35*sec)
	}},
	{"skipped behind a run whose record Redis lost, and that had ended", KindUntrue, func(s spoiler) {
		s.wrong(37*sec, 38*sec, true)
		s.unrecord("cron", "cron-3")
		s.skip("cron", "cron-4", "cron-5", 35*sec)
	}},
	{"skipped behind a run whose record Redis lost, and that had not begun", KindUntrue, func(s spoiler) {
		s.wrong(50*sec, 51*sec, true)
		s.skip("cron", "cron-4", "cron-5", 35*sec)
		s.unrecord("cron", "cron-5")
	}},
	{"superseded where one version has two spans", KindUntrue, func(s spoiler) {
		s.c.Jobs[0].Versions = append(s.c.Jobs[0].Versions, s.c.Jobs[0].Versions...)
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeSuperseded, "definition replaced", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"superseded long before the next version", KindUntrue, func(s spoiler) {
		v := s.c.Jobs[0].Versions[0]
		v.Schedule, v.Certain.From, v.Possible.From = mustEvery(10*sec), after(200*sec), after(199*sec)
		s.c.Jobs[0].Versions = append(s.c.Jobs[0].Versions, v)
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeSuperseded, "definition replaced", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"superseded long after it should have run", KindUntrue, func(s spoiler) {
		v := &s.c.Jobs[0].Versions
		*v = []Version{(*v)[0], (*v)[0]}
		(*v)[1].Schedule = mustEvery(10 * sec)
		(*v)[0].Certain.Until, (*v)[0].Possible.Until = after(60*sec), after(61*sec)
		(*v)[1].Certain.From, (*v)[1].Possible.From = after(61*sec), after(60*sec)
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-7", jobs.OutcomeSuperseded, "definition replaced", after(30*sec), after(30*sec), 1, after(60500*ms))
	}},
	{"skipped for an unknown reason", KindUntrue, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-3", jobs.OutcomeSkipped, "upstream", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"superseded without another version", KindUntrue, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomeSuperseded, "definition replaced", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"paused, and nobody paused", KindUntrue, func(s spoiler) {
		s.erase("ten", "ten-4")
		s.recordRange("ten", "ten-5", jobs.OutcomePaused, "", after(30*sec), after(30*sec), 1, after(31*sec))
	}},
	{"abandoned, and nothing was wrong", KindUntrue, func(s spoiler) { s.end("ten", "ten-4", jobs.OutcomeAbandoned) }},
	{"abandoned, and another node had died", KindUntrue, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false, s.row("ten", "ten-5").NodeName)
		s.end("ten", "ten-4", jobs.OutcomeAbandoned)
	}},
	{"cancelled, and nobody drained", KindUntrue, func(s spoiler) {
		s.wrong(30*sec, 31*sec, false)
		s.end("ten", "ten-4", jobs.OutcomeCancelled)
	}},
	{"a run is recorded as skipped", KindUntrue, func(s spoiler) { s.end("ten", "ten-4", jobs.OutcomeSkipped) }},
}
