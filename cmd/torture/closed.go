package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// stray is a node that did not go where its namespace went, or a ledger that was left and did not keep still.
const stray kind = "MOVE"

// kept checks that every record of a ledger that was left is in the one that it was copied to: nothing was recorded there
// after it was sealed, but that somebody reported of a run that had been abandoned before.
func (b books) kept(there books) []violation {
	var wrong []violation
	for job, rows := range b.Rows {
		for _, row := range rows {
			if !slices.ContainsFunc(there.Rows[job], func(x ledger.Row) bool {
				x.Late = row.Late
				return x == row
			}) {
				wrong = append(wrong, violation{stray, fmt.Sprintf("%s %s, %s at %s, is recorded only in the ledger that was left", job, stamp(time.UnixMilli(row.Tick)), row.Outcome, stamp(time.UnixMilli(row.At)))})
			}
		}
	}
	for _, l := range b.Open {
		wrong = append(wrong, violation{stray, fmt.Sprintf("%s %s is still open in the ledger that was left", l.Job, stamp(time.UnixMilli(l.Tick)))})
	}
	return wrong
}

// sealedOff are lines of runs that started while no ledger was open: seal has returned when nothing runs any more.
func sealedOff(lines []line, started map[string]time.Time, closed window) []violation {
	var wrong []violation
	for _, l := range lines {
		if at, known := started[l.run]; known && closed.holds(at) || !known && closed.holds(l.at) {
			wrong = append(wrong, violation{stray, fmt.Sprintf("started between seal and open: %s", l)})
		}
	}
	return wrong
}
