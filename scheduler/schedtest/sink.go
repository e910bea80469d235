package schedtest

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// sink is the outside world: a log with a clock of its own and a guard that refuses stale tokens.
// It is independent of the ledger. Its clock steps when Redis' does, because Redis' clock decides
// whether a tick is early or late.
type sink struct {
	writes []audit.Write
	latest time.Time // the latest time that its clock has shown
	// The time that its clock showed just before its last step, and when that step was.
	before, stepped time.Time
	top             map[string]int64 // by fence, the greatest token seen
	beside          map[string]bool  // jobs whose runs may go on side by side: there each tick is a fence of its own
}

// fence names the runs whose tokens are compared with each other.
func (s *sink) fence(run *jobs.Run) string {
	fence := run.Job()
	if s.beside[run.Job()] || run.Trigger() == jobs.TriggerBackfill {
		fence += " " + run.Tick().String()
	}
	if run.Trigger() == jobs.TriggerBackfill {
		fence += " backfill"
	}
	if run.Shards() > 1 { // shards of a tick write in any order
		fence += fmt.Sprint(" shard ", run.Shard())
	}
	return fence
}

// sees records the time of the clock.
func (s *sink) sees(at time.Time) {
	if at.After(s.latest) {
		s.latest = at
	}
}

// steps records the time of the clock just before a step.
func (s *sink) steps(at time.Time) {
	s.sees(at)
	s.before, s.stepped = at, time.Now()
}

// write takes one line. A tick that has come by Redis' clock has come, though the clock be set back
// since.
func (s *sink) write(at time.Time, p *process, run *jobs.Run, phase audit.Phase, failed bool) audit.Write {
	s.sees(at)
	// A run that was granted ahead waits by its node's estimate, and no node can have noticed the
	// step yet.
	if since := time.Since(s.stepped); since <= claim.AheadMax {
		s.sees(s.before.Add(since))
	}
	if tick := run.Tick(); at.Before(tick) && !s.latest.Before(tick) {
		at = tick
	}
	w := audit.Write{
		No: len(s.writes) + 1, At: at.UTC(), Job: run.Job(), Tick: run.Tick(), Run: run.ID(), Token: run.Token(),
		Node: p.slot.name, Attempt: run.Attempt(), Try: run.Try(), Shard: run.Shard(), Shards: run.Shards(), Trigger: run.Trigger().String(), Phase: phase, Failed: failed,
	}
	if fence := s.fence(run); w.Token < s.top[fence] {
		w.Refused = true
	} else {
		s.top[fence] = w.Token
	}
	s.writes = append(s.writes, w)
	return w
}
