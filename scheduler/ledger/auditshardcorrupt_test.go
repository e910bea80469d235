package ledger

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

// closed picks the row of a sharded tick whose shards' rows are all there, nil when there is none.
func (s *story) closed() *Row {
	return s.row(func(r Row) bool {
		return r.Whole && len(s.places(func(o Row) bool { return o.Of == r.Run && s.final(o) })) == r.Shards
	})
}

// final says that no later attempt of a shard's row followed.
func (s *story) final(r Row) bool {
	return !slices.ContainsFunc(s.rows, func(o Row) bool { return o.Of == r.Of && o.Shard == r.Shard && o.Attempt > r.Attempt })
}

// since a range was recorded before a tick was opened, all rows of its shards are there.
func (s *story) known(r *Row) bool {
	return r != nil && newAudit(s.entry, s.def, s.rows, s.open).complete(r)
}

// shardCorruptions are those of sharded ticks.
var shardCorruptions = []corruption{
	{"a shard's row is gone", P2, func(s *story) bool {
		r := s.closed()
		if r == nil || r.Prev == 0 {
			return false
		}
		tick, attempt := r.Run, r.Attempt
		s.drop(func(o Row) bool { return o.Of == tick && o.Attempt == attempt && s.final(o) }) // with an attempt before it, that would be the end
		i := slices.IndexFunc(s.rows, func(o Row) bool { return o.Run == tick })
		return s.known(&s.rows[i]) && len(s.places(func(o Row) bool { return o.Of == tick && s.final(o) })) < s.rows[i].Shards
	}},
	{"a tick's row is gone", P2, func(s *story) bool {
		r := s.closed()
		if r == nil {
			return false
		}
		tick := r.Run
		return s.drop(func(o Row) bool { return o.Run == tick })
	}},
	{"a tick's row twice", P2, func(s *story) bool {
		r := s.closed()
		if r != nil {
			s.rows = append(s.rows, *r)
		}
		return r != nil
	}},
	{"a tick with another outcome", P2, func(s *story) bool {
		r := s.closed()
		if r != nil {
			was := r.Outcome
			r.Outcome = []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeAbandoned}[s.rng.IntN(3)]
			return r.Outcome != was
		}
		return false
	}},
	{"a shard with a worse outcome than its tick", P2, func(s *story) bool {
		r := s.closed()
		if r == nil || r.Outcome == jobs.OutcomeAbandoned {
			return false
		}
		tick := r.Run
		return s.change(func(o Row) bool { return o.Of == tick && s.final(o) }, func(o *Row) { o.Outcome = jobs.OutcomeAbandoned })
	}},
	{"a shard ran on another node too", P1, func(s *story) bool {
		r := s.row(func(r Row) bool { return r.Of != "" && r.Request == "" })
		if r == nil {
			return false
		}
		again := *r
		again.Run, again.Node, again.Token = s.id(), "n2", r.Token+1
		s.rows = append(s.rows, again)
		return true
	}},
	{"a shard of no tick", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.Of != "" }, func(r *Row) { r.Of = s.id() })
	}},
	{"a shard that ended is in flight", P2, func(s *story) bool {
		r := s.closed()
		if r == nil {
			return false
		}
		s.open = append(s.open, Lease{Run: s.id(), Job: "a", Of: r.Run, Tick: r.Tick, Shard: s.rng.IntN(r.Shards), Shards: r.Shards, Attempt: r.Attempt + 9,
			Granted: s.now, Trigger: "rerun"})
		return true
	}},
	{"an open tick has another number to end", P2, func(s *story) bool {
		i := slices.IndexFunc(s.open, func(l Lease) bool { return l.Whole })
		if i >= 0 {
			s.open[i].Left += 1 - 2*s.rng.IntN(2)
		}
		return i >= 0
	}},
	{"a shard of an open tick is gone", P2, func(s *story) bool {
		i := slices.IndexFunc(s.open, func(l Lease) bool { return l.Of != "" })
		if i >= 0 {
			s.open = slices.Delete(s.open, i, i+1)
		}
		return i >= 0
	}},
	{"an open tick is gone", P2, func(s *story) bool {
		i := slices.IndexFunc(s.open, func(l Lease) bool { return l.Whole })
		if i >= 0 {
			s.open = slices.Delete(s.open, i, i+1)
		}
		return i >= 0
	}},
	{"a closed tick is open", P2, func(s *story) bool {
		r := s.closed()
		if r != nil {
			s.open = append(s.open, Lease{Run: r.Run, Job: "a", Whole: true, Tick: r.Tick, Shards: r.Shards, Attempt: r.Attempt, Granted: s.now})
		}
		return r != nil
	}},
}
