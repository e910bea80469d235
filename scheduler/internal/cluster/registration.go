package cluster

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Rounds bounds the tries of a registration whose entry keeps changing, before it waits for its
// next turn.
const Rounds = 5

// Registration is the registration of one job.
type Registration struct {
	Job *work.Job
	Def define.Definition
	// Last is the latest recorded instant, ms, 0 for none. The definition's first tick comes after
	// it.
	Last int64
	old  *jobs.Schedule // of the definition to be replaced; nil: none, or it has no more ticks
	// after are the jobs that the replaced definition follows.
	after    []string
	sendText bool // the definition's text is sent
}

// At is the definition as of one instant: its first tick comes after now, and the old schedule's
// ticks up to now are counted, because no node will run them.
func (w *Registration) At(now time.Time) define.Definition {
	def, after := w.Def, now
	if w.old != nil {
		count, until := w.old.Count(time.UnixMilli(def.WasCursor), now.Add(time.Millisecond))
		//guard:old-ticks-counted P2 ticks of the old schedule that will not run are accounted for
		def.Until, def.Count = work.Millis(until), int64(count)
		if def.Upcoming = def.WasCursor; def.WasCursor <= now.UnixMilli() {
			def.Upcoming = work.Millis(w.old.Next(now))
		}
	}
	if w.Job.Schedule == nil {
		return def // it follows another job and has no ticks of its own
	}
	if last := time.UnixMilli(w.Last); w.Last != 0 && last.After(after) {
		after = last
	}
	def.Cursor = work.Millis(w.Job.Schedule.Next(after))
	return def
}

// Replaces makes the registration replace a stored definition that was seen at this cursor (ms).
func (w *Registration) Replaces(old jobs.Definition, digest string, cursor int64) error {
	w.Def.WasDigest, w.Def.WasCursor, w.old, w.after = digest, cursor, nil, old.After
	w.Def.Same = old.SameTicks(w.Job.Def) && !(cursor == 0 && w.Job.Def.Reopens(old))
	schedule, err := old.ParsedSchedule()
	if schedule != nil {
		w.Def.Old = schedule.String()
	}
	if cursor == 0 {
		return nil // it has no more ticks to count
	}
	w.old = schedule
	return err
}
