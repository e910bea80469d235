package ledger

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

type corruption struct {
	name, promise string
	spoil         func(s *story) bool
}

// corruptions change true books in a way that is wrong whatever happened. Each says which promise is then
// broken, "" for any, and returns false when there is nothing to change.
var corruptions = []corruption{
	{"a run's row is gone", P2, func(s *story) bool { return s.drop(s.stepRun) }},
	{"a range is gone", P2, func(s *story) bool { return s.drop(s.passed) }},
	{"a cursor set back is not", P2, func(s *story) bool {
		return s.drop(func(r Row) bool { // at the base it takes the eras before it along: they are then before the recorded chain
			return r.turns() && r.Prev != r.Next && r.Prev != s.entry.Base && s.inChain(r)
		})
	}},
	{"a cursor set back over ticks", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.turns() && !r.replaces() && s.inChain(r) }, func(r *Row) { r.Count = 1 })
	}},
	{"a cursor set back to between two ticks", P2, func(s *story) bool {
		r := s.latest()
		if r == nil || r.Reason != ReasonRewound {
			return false
		}
		r.Tick, r.Next, s.entry.Cursor = r.Tick+1, r.Next+1, r.Next+1
		return true
	}},
	{"a cursor set anew, nobody knows why", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.turns() && s.inChain(r) }, func(r *Row) { r.Reason = "just so" })
	}},
	{"an old schedule had no such tick", P2, func(s *story) bool {
		r := s.first()
		if r == nil || !r.replaces() || r.Count > 0 || r.Prev == 0 {
			return false
		}
		r.Prev, r.Tick, s.entry.Base = r.Prev+1, r.Tick+1, s.entry.Base+1
		return true
	}},
	{"a new schedule has no such tick", P2, func(s *story) bool {
		r := s.latest()
		if r == nil || !r.replaces() || r.Next == 0 {
			return false
		}
		r.Next, s.entry.Cursor = r.Next+1, r.Next+1
		return true
	}},
	{"a new schedule passes over a tick", P2, func(s *story) bool {
		r := s.latest()
		if r == nil || !r.replaces() || r.Next == 0 || r.Prev == 0 {
			return false
		}
		r.Next = tickAfter(s.sched, tickAfter(s.sched, max(r.At+skewMost, r.Prev)))
		s.entry.Cursor = r.Next
		return true
	}},
	{"a row twice", "", func(s *story) bool {
		if len(s.rows) == 0 {
			return false
		}
		r := s.rows[s.rng.IntN(len(s.rows))]
		if r.turns() && r.Prev == r.Next || r.Ranged && !s.inChain(r) {
			return false // says nothing, twice
		}
		s.rows = append(s.rows, r)
		return true
	}},
	{"a tick ran on another node too", P1, func(s *story) bool {
		r := s.row(func(r Row) bool { return r.ran() && r.Request == "" })
		if r == nil {
			return false
		}
		again := *r
		again.Run, again.Node, again.Token = s.id(), "n2", r.Token+1
		s.rows = append(s.rows, again)
		return true
	}},
	{"the tokens of two ticks are swapped", P3, func(s *story) bool {
		all := s.places(func(r Row) bool { return s.stepRun(r) && !derived(r.Run) })
		if len(all) < 2 {
			return false
		}
		a, b := &s.rows[all[0]], &s.rows[all[len(all)-1]]
		a.Token, b.Token = b.Token, a.Token
		return true
	}},
	{"the tokens of two attempts are swapped", P3, func(s *story) bool {
		b := s.row(func(r Row) bool { return s.sole(r) && r.Trigger == "rerun" && r.Request == "" && r.Token != 0 })
		if b == nil {
			return false
		}
		a := s.row(func(r Row) bool {
			return r.ran() && r.Tick == b.Tick && r.Attempt == b.Attempt-1 && r.Request == "" && r.Token != 0
		})
		if a == nil {
			return false
		}
		a.Token, b.Token = b.Token, a.Token
		return true
	}},
	{"a token twice", P3, func(s *story) bool {
		all := s.places(func(r Row) bool { return r.ran() && r.Token != 0 })
		if len(all) < 2 {
			return false
		}
		s.rows[all[1]].Token = s.rows[all[0]].Token
		return true
	}},
	{"a run twice", P1, func(s *story) bool {
		all := s.places(Row.ran)
		if len(all) < 2 {
			return false
		}
		s.rows[all[1]].Run = s.rows[all[0]].Run
		return true
	}},
	{"a run has no token", P3, func(s *story) bool { return s.change(s.stepRun, func(r *Row) { r.Token = 0 }) }},
	{"the tick of a run is another", P2, func(s *story) bool { return s.change(s.stepRun, func(r *Row) { r.Tick++ }) }},
	{"a run is of no tick", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.stepRun(r) && r.Attempt == 1 }, func(r *Row) { r.Prev = 0 })
	}},
	{"a run beside the chain", P2, func(s *story) bool {
		s.rows = append(s.rows, Row{Job: "a", At: s.now, Tick: s.now - 1, Shards: 1, Attempt: 1, Run: s.id(), Trigger: "schedule", Outcome: jobs.OutcomeCancelled})
		return true
	}},
	{"a run began before its tick", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.stepRun(r) && !derived(r.Run) }, func(r *Row) { r.Started = r.Tick - 3600_000 })
	}},
	{"a run went on behind the next tick", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.stepRun(r) && r.Next != 0 }, func(r *Row) { r.Next++ })
	}},
	{"a range that is a tick too short", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.passed(r) && r.Count > 1 && s.since(r) }, func(r *Row) {
			r.Count--
			_, r.Until = count(s.sched, r.Tick, r.Until-1)
		})
	}},
	{"and whose next tick fits", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.passed(r) && r.Count > 1 && s.since(r) }, func(r *Row) {
			r.Next, r.Count = r.Until, r.Count-1
			_, r.Until = count(s.sched, r.Tick, r.Until-1)
		})
	}},
	{"a tick is gone without a gap", P2, func(s *story) bool {
		all := stepsOf(s.entry, s.rows, s.open)
		for i := 1; i < len(all); i++ {
			a, b := all[i-1], all[i]
			if a.row != nil && b.row != nil && !a.row.Ranged && !b.row.Ranged && a.era == b.era && b.next != never {
				a.row.Next = b.row.Next
				return s.drop(func(r Row) bool { return r.Run == b.row.Run })
			}
		}
		return false
	}},
	{"a range that ends between two ticks", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.passed(r) && r.Until < r.At }, func(r *Row) { r.Until++ })
	}},
	{"a range that begins a tick too late", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.passed(r) && r.Count > 1 && s.since(r) }, func(r *Row) {
			r.Tick, r.Count = tickAfter(s.sched, r.Tick), r.Count-1
		})
	}},
	{"a chain that begins between two ticks", P2, func(s *story) bool {
		r := s.first()
		if r == nil || r.Count < 2 || r.turns() {
			return false
		}
		r.Tick, r.Prev, r.Count, s.entry.Base = r.Tick+1, r.Prev+1, r.Count-1, s.entry.Base+1
		return true
	}},
	{"a range of one tick more than there are", P2, func(s *story) bool { return s.change(s.passed, func(r *Row) { r.Count++ }) }},
	{"a range of ticks that ran", P1, func(s *story) bool {
		r := s.row(func(r Row) bool { return s.stepRun(r) && r.Next != 0 })
		if r == nil {
			return false
		}
		s.rows = append(s.rows, Row{Job: "a", Ranged: true, Prev: r.Tick, Next: r.Next, Tick: r.Tick, Until: r.Tick, Count: 1, At: s.now,
			Outcome: jobs.OutcomePaused, Reason: ReasonPaused})
		return !slices.ContainsFunc(s.rows, func(r Row) bool { return r.turns() }) // else it may stand in another era
	}},
	{"a range that ran", P2, func(s *story) bool {
		return s.change(s.passed, func(r *Row) { r.Outcome = jobs.OutcomeSucceeded })
	}},
	{"a range without a reason", P2, func(s *story) bool { return s.change(s.passed, func(r *Row) { r.Reason = "" }) }},
	{"a range with another's reason", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return s.passed(r) && r.Reason != ReasonPaused }, func(r *Row) { r.Reason = ReasonPaused })
	}},
	{"a reason that the policies do not know", P2, func(s *story) bool {
		reason := map[bool]string{true: ReasonLate, false: ReasonCatchUpMax}[s.def.CatchUp == jobs.CatchUpAll]
		return s.change(func(r Row) bool { return s.passed(r) && s.since(r) }, func(r *Row) { r.Outcome, r.Reason = jobs.OutcomeMissed, reason })
	}},
	{"a range of ticks to come", P2, func(s *story) bool { return s.change(s.passed, func(r *Row) { r.At = r.Until - 1 }) }},
	{"the cursor went on", P2, func(s *story) bool { s.entry.Cursor = s.after(s.entry.Cursor); return true }},
	{"the cursor ended", P2, func(s *story) bool { s.entry.Cursor = 0; return true }},
	{"the cursor is off", P2, func(s *story) bool { s.entry.Cursor++; return true }},
	{"the chain begins sooner", P2, func(s *story) bool { s.entry.Base--; return true }},
	{"the entry's token is smaller", P3, func(s *story) bool {
		s.entry.Token--
		return slices.ContainsFunc(s.rows, func(r Row) bool { return r.Token == s.entry.Token+1 })
	}},
	{"a first attempt is a second one", P1, func(s *story) bool {
		return !s.cut() && !slices.ContainsFunc(s.rows, func(r Row) bool { return r.Reason == ReasonRewound }) &&
			s.change(func(r Row) bool { return s.stepRun(r) && s.top[r.Tick] == 1 }, func(r *Row) { r.Attempt = 2 })
	}},
	{"an attempt has no record", "", func(s *story) bool {
		third := s.row(func(r Row) bool { return s.sole(r) && r.Request == "" && r.Trigger == "rerun" && r.Attempt > 2 })
		if third == nil || s.cut() {
			return false
		}
		tick, n := third.Tick, third.Attempt-1
		return s.drop(func(r Row) bool { return r.Tick == tick && r.Attempt == n && r.Request == "" && !r.Ranged })
	}},
	{"an attempt while the one before it goes on", P1, func(s *story) bool {
		second := s.row(func(r Row) bool { return s.sole(r) && r.Trigger == "rerun" && r.Request == "" })
		if second == nil {
			return false
		}
		i := slices.IndexFunc(s.rows, func(r Row) bool {
			return !r.Ranged && r.Tick == second.Tick && r.Attempt == second.Attempt-1 && r.Request == ""
		})
		if i < 0 {
			return false
		}
		r := s.rows[i]
		s.rows = slices.Delete(s.rows, i, i+1)
		s.open = append(s.open, Lease{Run: r.Run, Job: "a", Tick: r.Tick, Shards: 1, Attempt: r.Attempt, Token: r.Token, Prev: r.Prev, Next: r.Next, Granted: s.now})
		return true
	}},
	{"an attempt is recorded before the end of the one before it", P1, func(s *story) bool {
		second := s.row(func(r Row) bool { return s.sole(r) && r.Trigger == "rerun" && r.Request == "" })
		if second == nil {
			return false
		}
		first := s.row(func(r Row) bool {
			return !r.Ranged && r.Tick == second.Tick && r.Attempt == second.Attempt-1 && r.Request == ""
		})
		if first == nil {
			return false
		}
		*first, *second = *second, *first
		return true
	}},
	{"a run in flight is gone", P2, func(s *story) bool {
		i := slices.IndexFunc(s.open, func(l Lease) bool { return l.Prev != 0 && l.Prev >= s.entry.Base && s.entry.Base != 0 })
		if i >= 0 {
			s.open = slices.Delete(s.open, i, i+1)
		}
		return i >= 0
	}},
	{"a run that ended is in flight", P1, func(s *story) bool {
		r := s.row(Row.ran)
		if r != nil {
			s.open = append(s.open, Lease{Run: r.Run, Job: "a", Tick: r.Tick, Shards: 1, Attempt: r.Attempt, Token: r.Token, Request: r.Request, Granted: s.now})
		}
		return r != nil
	}},
	{"a run was granted before its tick", P2, func(s *story) bool {
		i := slices.IndexFunc(s.open, func(l Lease) bool { return !derived(l.Run) && !l.Pending() })
		if i >= 0 {
			s.open[i].Granted = s.open[i].Tick - 1
		}
		return i >= 0
	}},
	{"nobody knows what the schedule was", Books, func(s *story) bool {
		return s.change(func(r Row) bool { return r.replaces() && s.inChain(r) }, func(r *Row) { r.Note = "every now and then" })
	}},
	{"a replaced schedule had another number of ticks", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.replaces() && r.Count > 0 && s.inChain(r) }, func(r *Row) { r.Count++ })
	}},
	{"a replaced schedule left ticks behind", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.replaces() && r.Count > 0 && s.inChain(r) }, func(r *Row) { r.Count, r.Until = 0, 0 })
	}},
	{"a new schedule began in the past", P2, func(s *story) bool {
		return s.change(func(r Row) bool { return r.replaces() && r.Next != 0 && r.Prev != r.Next && s.inChain(r) },
			func(r *Row) { r.At = r.Next })
	}},
	{"more rows than were counted", Books, func(s *story) bool {
		clear(s.entry.Counts)
		return slices.ContainsFunc(s.rows, func(r Row) bool { return r.ran() || r.Count > 0 })
	}},
}
