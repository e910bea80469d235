package verify

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// plantedOrder are faults of tokens, of the order of runs, and of what sink and books tell of them.
var plantedOrder = []fault{
	{"a smaller token is accepted", KindToken, func(s spoiler) { s.retoken("ten", "ten-4", 1) }},
	{"a greater token is refused", KindToken, func(s spoiler) { s.line("ten-4", End).Refused = true }},
	{"a run has two tokens", KindToken, func(s spoiler) { s.line("ten-4", End).Token++ }},
	{"two runs have one token", KindToken, func(s spoiler) {
		s.retoken("ten", "ten-30", s.line("ten-29", Start).Token)
		s.unwrite("ten-30", End)
		s.wrong(290*sec, 291*sec, false)
		s.end("ten", "ten-30", jobs.OutcomeAbandoned)
	}},
	{"a run started while the last one was going", KindOverlap, func(s spoiler) { s.outlive("cron-4", "cron-5") }},
	{"the same, and the last one was abandoned, but later", KindOverlap, func(s spoiler) {
		s.outlive("cron-4", "cron-5")
		s.wrong(35*sec, 36*sec, false)
		row := *s.row("cron", "cron-4")
		row.Outcome, row.At = jobs.OutcomeAbandoned, after(60*sec).UnixMilli()
		s.unrecord("cron", "cron-4")
		s.c.Books.Rows["cron"] = append(s.c.Books.Rows["cron"], row)
	}},
	{"a run in flight is not stale because it was refused", KindOverlap, func(s spoiler) {
		s.outlive("cron-29", "cron-30")
		s.c.Books.Open = []ledger.Lease{lease(*s.row("cron", "cron-29"), s.c.Read.Add(-20*sec))}
		s.unrecord("cron", "cron-29")
	}},
	{"a run that failed and never ended", KindOverlap, func(s spoiler) {
		s.unwrite("cron-4", End)
		s.end("cron", "cron-4", jobs.OutcomeFailed)
	}},
	{"the same as at first, and Redis lost something long after", KindOverlap, func(s spoiler) {
		s.outlive("cron-4", "cron-5")
		s.wrong(200*sec, 201*sec, true)
	}},
	{"a run after a loss has no record", KindBooks, func(s spoiler) {
		s.wrong(30*sec, 31*sec, true)
		s.unrecord("ten", "ten-20")
	}},
	{"a run ends with another tick", KindBooks, func(s spoiler) { s.line("ten-4", End).Tick = after(40 * sec) }},
	{"a run timed out and did not start", KindBooks, func(s spoiler) {
		s.unwrite("ten-4", Start)
		s.unwrite("ten-4", End)
		s.end("ten", "ten-4", jobs.OutcomeTimedOut)
	}},
	{"a run has no record", KindBooks, func(s spoiler) { s.unrecord("ten", "ten-4") }},
	{"a run by hand has no record", KindBooks, func(s spoiler) { s.unrecord("asked", "asked-2") }},
	{"a run is recorded with another node", KindBooks, func(s spoiler) { s.row("ten", "ten-4").NodeName = "n9" }},
	{"a run is recorded with another token", KindBooks, func(s spoiler) { s.row("ten", "ten-4").Token++ }},
	{"a run by hand is recorded with another tick", KindBooks, func(s spoiler) { s.row("asked", "asked-2").Tick++ }},
	{"a run ends on another node", KindBooks, func(s spoiler) { s.line("ten-4", End).Node = "n9" }},
	{"a run succeeded and did not start", KindBooks, func(s spoiler) {
		s.unwrite("ten-4", Start)
		s.unwrite("ten-4", End)
	}},
	{"a run failed and did not start", KindBooks, func(s spoiler) {
		s.unwrite("ten-4", Start)
		s.unwrite("ten-4", End)
		s.end("ten", "ten-4", jobs.OutcomeFailed)
	}},
	{"a run succeeded and did not end", KindBooks, func(s spoiler) { s.unwrite("ten-30", End) }},
	{"the ledger's audit found something", KindBooks, func(s spoiler) { s.c.Books.Chain = []string{"gap"} }},
	{"rows of a job nobody configured", KindBooks, func(s spoiler) { s.c.Books.Rows["ghost"] = s.c.Books.Rows["ten"] }},
	{"a run of a job nobody configured is in flight", KindBooks, func(s spoiler) { s.c.Books.Open = []ledger.Lease{{Job: "ghost"}} }},
	{"a run is in flight for too long", KindBooks, func(s spoiler) {
		s.c.Books.Open = []ledger.Lease{lease(*s.row("ten", "ten-30"), s.c.Read.Add(-21*sec))}
		s.unrecord("ten", "ten-30")
	}},
	{"a run is in flight for too long, and all nodes were drained in the end", KindBooks, func(s spoiler) {
		s.c.Books.Open = []ledger.Lease{lease(*s.row("ten", "ten-30"), s.c.Read.Add(-21*sec))}
		s.unrecord("ten", "ten-30")
		s.c.Disturbed = []Disturbance{{Span: Span{From: s.c.Read}, What: "drain"}}
	}},
	{"a start by hand that nobody asked for", KindBlind, func(s spoiler) { s.c.Jobs[2].Asked = s.c.Jobs[2].Asked[1:] }},
	{"a start by hand before it was asked for", KindBlind, func(s spoiler) { s.c.Jobs[2].Asked[1] = after(108 * sec) }},
	{"a row counts more ticks than there are", KindDisagree, func(s spoiler) {
		s.wrong(30*sec, 60*sec, false)
		s.erase("ten", "ten-4")
		s.erase("ten", "ten-5")
		s.recordRange("ten", "ten-6", jobs.OutcomeMissed, "late", after(30*sec), after(40*sec), 3, after(50*sec))
	}},
}
