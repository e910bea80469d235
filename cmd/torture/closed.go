//go:build unix

package main

import (
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// stray is a node that did not go where its namespace went, or a ledger that was left and did not keep still.
const stray judge.Kind = "MOVE"

// kept checks that every record of a ledger that was left is in the one that it was copied to: nothing was recorded there
// after it was sealed, but that somebody reported of a run that had been abandoned before.
func (b books) kept(there books) []judge.Finding {
	var wrong []judge.Finding
	for job, left := range b {
		for _, row := range left.Rows {
			if !slices.ContainsFunc(there[job].Rows, func(x judge.Row) bool {
				x.Late = row.Late
				return x == row
			}) {
				wrong = append(wrong, judge.NewFinding(stray, job, time.UnixMilli(row.Tick), "%s at %s, is recorded only in the ledger that was left", row.Outcome, stamp(time.UnixMilli(row.At))))
			}
		}
		for _, l := range left.Open {
			wrong = append(wrong, judge.NewFinding(stray, job, time.UnixMilli(l.Tick), "run %s is still open in the ledger that was left", l.Run))
		}
	}
	return wrong
}

// sealedOff are lines of runs that started while no ledger was open: seal has returned when nothing runs any more.
func sealedOff(lines []line, started map[string]time.Time, closed window) []judge.Finding {
	var wrong []judge.Finding
	for _, l := range lines {
		if at, known := started[l.run]; known && closed.holds(at) || !known && closed.holds(l.at) {
			wrong = append(wrong, judge.NewFinding(stray, l.job, l.tick, "started between seal and open: %s", l))
		}
	}
	return wrong
}
