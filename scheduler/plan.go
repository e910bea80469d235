package scheduler

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// catchUpBound is how late a tick may be and still run in its order; beyond it the catch-up
// policy decides.
const catchUpBound = 10 * time.Second

// step is one move of a cursor: missed ticks from the cursor on, the last of them until, are
// recorded; tick is run; next is where the cursor goes. Instants are ms, 0 for none.
type step struct {
	until, missed int64
	tick, next    int64
	trigger       jobs.Trigger
}

// plan decides what to do with a job whose cursor is due at Redis' time now. A cursor that is
// late by no more than the catch-up bound is simply run, so late ticks run in order. Behind that
// there is a gap: the newest due tick runs and the ones before it are missed (catch_up: latest).
func plan(s *jobs.Schedule, cursor, now int64) step {
	next := func(tick int64) int64 { return millis(s.Next(time.UnixMilli(tick))) }
	if now-cursor <= catchUpBound.Milliseconds() {
		return step{tick: cursor, next: next(cursor), trigger: jobs.TriggerSchedule}
	}
	_, newest := s.Count(time.UnixMilli(cursor), time.UnixMilli(now+1))
	tick := max(cursor, millis(newest))
	missed, last := s.Count(time.UnixMilli(cursor), time.UnixMilli(tick))
	return step{until: millis(last), missed: int64(missed), tick: tick, next: next(tick), trigger: jobs.TriggerCatchUp}
}

// millis is an instant in ms since 1970; 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
