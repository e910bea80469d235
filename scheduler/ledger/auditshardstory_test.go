package ledger

import (
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// Sharded ticks in made-up books.

// begin grants a run, or opens a tick in its place; a repeated one may wait for that.
func (s *story) begin(l Lease) {
	switch {
	case l.Trigger == "rerun" && l.Request == "" && s.chance(50):
		l.Job, l.Shards, l.Granted = "a", 1, s.now
		s.note(l)
		s.open = append(s.open, l)
	case s.parts > 1:
		s.split(l)
	default:
		s.lease(l)
	}
}

func (s *story) note(l Lease) {
	at := line{tick: l.Tick, shard: l.Shard}
	s.top[l.Tick], s.lines[at], s.used[l.Run] = max(s.top[l.Tick], l.Attempt), max(s.lines[at], l.Attempt), true
}

// split opens a tick in the place of a run.
func (s *story) split(l Lease) {
	l.Job, l.Whole, l.Shards, l.Left, l.Granted = "a", true, s.parts, s.parts, s.now
	l.Holds = s.def.Overlap != jobs.OverlapAllow
	s.used[l.Run] = true
	s.open = append(s.open, l)
	for i := range s.parts {
		p := Lease{Run: ShardRun(l.Run, i), Of: l.Run, Job: "a", Tick: l.Tick, Shard: i, Shards: s.parts, Attempt: l.Attempt, Trigger: l.Trigger,
			Request: l.Request, Granted: s.now}
		s.note(p)
		s.open = append(s.open, p)
	}
}

// take grants what waits, or cancels it.
func (s *story) take(i int) {
	l := s.open[i]
	held := s.holder() != nil
	if l.Of == "" && held && s.def.Overlap != jobs.OverlapAllow {
		return
	}
	s.open = slices.Delete(slices.Clone(s.open), i, i+1)
	switch {
	case s.chance(10):
		s.push(Row{Tick: l.Tick, Outcome: jobs.OutcomeCancelled, Shard: l.Shard, Shards: l.Shards, Attempt: l.Attempt, Run: l.Run, Trigger: l.Trigger,
			Request: l.Request, Of: l.Of, Started: s.now})
		if l.Of != "" {
			s.part(l.Of, jobs.OutcomeCancelled)
		}
	case l.Of == "" && s.parts > 1:
		s.split(l)
	default:
		s.lease(l)
	}
}

// part notes that a shard has ended, and closes the tick with the last one.
func (s *story) part(tick string, how jobs.Outcome) {
	i := slices.IndexFunc(s.open, func(l Lease) bool { return l.Run == tick })
	l := &s.open[i]
	if s.worst == nil {
		s.worst = map[string]jobs.Outcome{}
	}
	if slices.Index(fromBest, how) > slices.Index(fromBest, s.worst[tick]) {
		s.worst[tick] = how
	}
	if l.Left--; l.Left > 0 {
		return
	}
	s.push(Row{Whole: true, Prev: l.Prev, Next: l.Next, Tick: l.Tick, Outcome: s.worst[tick], Shards: l.Shards, Attempt: l.Attempt, Run: tick,
		Trigger: l.Trigger, Request: l.Request, Started: l.Granted})
	s.open = slices.Delete(slices.Clone(s.open), i, i+1)
}

// busy says that something of a tick goes on, or waits.
func (s *story) busy(tick int64) bool {
	return slices.ContainsFunc(s.open, func(l Lease) bool { return l.Tick == tick })
}

// ran is a run's row, and sole one of a tick that never had shards.
func (r Row) ran() bool { return !r.Ranged && !r.Whole }

func (s *story) sole(r Row) bool {
	return r.ran() && !slices.ContainsFunc(s.rows, func(o Row) bool { return o.Tick == r.Tick && o.Shards > 1 }) &&
		!slices.ContainsFunc(s.open, func(l Lease) bool { return l.Tick == r.Tick && l.Shards > 1 })
}

// TestDerived: the shards of a tick that is repeated are as much derived from another run as it is.
func TestDerived(t *testing.T) {
	for run, want := range map[string]bool{"x": false, Successor("x"): true, ShardRun(Successor("x"), 3): true, ShardRun("x", 3): false,
		newStory(1).id(): false, Successor("x") + "y": false} {
		if derived(run) != want {
			t.Errorf("%s: want %v", run, want)
		}
	}
}
