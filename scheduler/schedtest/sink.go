package schedtest

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// sink is the outside world: a log with a clock of its own and a guard that refuses stale tokens.
// It knows nothing of the ledger. Its clock is its own, and steps when Redis' does, for it is by Redis'
// clock that a tick is early or late.
type sink struct {
	unguarded bool
	writes    []verify.Write
	latest    time.Time        // that its clock has shown
	top       map[string]int64 // by job, the greatest token seen
}

// sees notes what the clock shows.
func (s *sink) sees(at time.Time) {
	if at.After(s.latest) {
		s.latest = at
	}
}

// write takes one line. A tick that has come by Redis' clock has come, though the clock be set back
// since.
func (s *sink) write(at time.Time, p *process, run *jobs.Run, phase verify.Phase) verify.Write {
	s.sees(at)
	if tick := run.Tick(); at.Before(tick) && !s.latest.Before(tick) {
		at = tick
	}
	w := verify.Write{
		No: len(s.writes) + 1, At: at.UTC(), Job: run.Job(), Tick: run.Tick(), Run: run.ID(), Token: run.Token(),
		Node: p.seat.name, Attempt: run.Attempt(), Trigger: run.Trigger().String(), Phase: phase,
	}
	if w.Token < s.top[w.Job] {
		w.Refused = !s.unguarded
	} else {
		s.top[w.Job] = w.Token
	}
	s.writes = append(s.writes, w)
	return w
}
