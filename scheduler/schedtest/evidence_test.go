package schedtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

// everything is a plan with every policy and every kind of evidence, that breaks no promise.
func everything() Plan {
	job := func(name, schedule string, work jobs.Func) jobs.Job {
		return jobs.Job{Name: name, Schedule: schedule, TTL: 3 * second, Func: work}
	}
	p := Plan{Seed: 1, Heal: 16 * second, For: 34 * second}
	queued, parts, crashes := job("queued", "* * * * * *", patient(1300*time.Millisecond)), job("parts", "*/3 * * * * *", patient(200*time.Millisecond)), job("crashes", "*/4 * * * * *", patient(3*second))
	queued.Overlap, parts.Shards = jobs.OverlapQueue, 3
	crashes.OnCrash, crashes.RerunMax = jobs.OnCrashRerun, 3
	tries := job("tries", "*/2 * * * * *", failsOnce)
	tries.Retry = jobs.Retry{Max: 2, Backoff: 30 * time.Millisecond, MaxBackoff: 30 * time.Millisecond}
	prompt := job("prompt", "* * * * * *", patient(10*time.Millisecond))
	prompt.StartWithin = second
	p.Jobs = []jobs.Job{
		job("plain", "* * * * * *", patient(50*time.Millisecond)), queued, parts, crashes, tries, prompt,
		job("rests", "*/2 * * * * *", patient(20*time.Millisecond)),
		job("rewound", "*/2 * * * * *", patient(20*time.Millisecond)),
		job("fails", "*/5 * * * * *", func(context.Context, *jobs.Run) error { return errors.New("no") }),
		{Name: "follower", After: []string{"plain"}, TTL: 3 * second, Func: patient(20 * time.Millisecond)},
		{Name: "mourner", After: []string{"fails"}, TTL: 3 * second, Func: patient(20 * time.Millisecond)},
		{Name: "alert", After: []string{"fails"}, When: jobs.WhenFailed, TTL: 3 * second, Func: patient(20 * time.Millisecond)},
		{Name: "both", After: []string{"plain", "prompt"}, TTL: 3 * second, Func: patient(20 * time.Millisecond)},
	}
	p.Triggers = []Trigger{{When: 5500 * time.Millisecond, Job: "plain"}}
	p.acts = append(p.acts, act{5 * second, func(c *cluster) { // the node that runs it dies
		for _, call := range c.calls {
			if call.job == "crashes" {
				c.apply(Fault{Do: Crash, For: 2 * second}, call.process)
				return
			}
		}
	}})
	by := func(when time.Duration, do func(c *cluster, in *ops.Client) error) {
		p.acts = append(p.acts, act{when, func(c *cluster) {
			if err := c.beside(func(_ *ledger.Ledger, in *ops.Client) error { return do(c, in) }); err != nil {
				c.blame(Harness, "", "%v", err)
			}
		}})
	}
	by(6500*time.Millisecond, func(c *cluster, in *ops.Client) error {
		return c.pause(in, "rests", ops.PauseOptions{Author: "ops", Reason: "rest"})
	})
	by(13500*time.Millisecond, func(c *cluster, in *ops.Client) error { return c.resume(in, "rests") })
	by(20500*time.Millisecond, func(c *cluster, in *ops.Client) error {
		return c.rewind(in, "rewound", time.Now().Add(-5*second))
	})
	return p
}

// failsOnce fails in the first try of each run.
func failsOnce(_ context.Context, run *jobs.Run) error {
	if run.Try() == 1 {
		return errors.New("not yet")
	}
	return nil
}

// spoiling changes true evidence in a way that is wrong whatever happened.
type spoiling struct {
	name string
	job  string // the only job to spoil; "": every fitting one
	want string // kinds of finding, or promises of the books, one of which must be named
	by   func(s *spoilt) bool
}

// spoilt is evidence that is being spoilt, of one job.
type spoilt struct {
	audit.Case
	job   *audit.Job
	books query.JobSnapshot
}

// row returns a fitting row: if possible, one of the seconds without a fault and before the nodes
// drain. nil: there is none.
func (s *spoilt) row(fits func(r *ledger.Row) bool) *ledger.Row {
	var other *ledger.Row
	for i := range s.books.Rows {
		r := &s.books.Rows[i]
		if !fits(r) {
			continue
		}
		if ago := s.Read.Sub(time.UnixMilli(r.At)); ago > 10*second && ago < 16*second {
			return r
		}
		other = r
	}
	return other
}

func ran(r *ledger.Row) bool {
	return !r.Ranged && !r.IsTick && r.TickID == "" && r.Prev != 0 && r.Attempt == 1 && r.Outcome == jobs.OutcomeSucceeded
}

func byHand(r *ledger.Row) bool { return r.Trigger == "manual" }

func ranged(r *ledger.Row) bool { return r.Ranged && r.Count > 0 }

// drop removes a row.
func (s *spoilt) drop(r *ledger.Row) {
	gone := *r
	s.books.Rows = slices.DeleteFunc(s.books.Rows, func(x ledger.Row) bool { return x == gone })
}

// recount makes the counters fit the rows again: rows missing from the counters may have left the
// history, which excuses much.
func (s *spoilt) recount() {
	s.books.Entry.Counts = make(map[jobs.Outcome]int64)
	for _, r := range s.books.Rows {
		switch {
		case r.Ranged:
			s.books.Entry.Counts[r.Outcome] += r.Count
		case !r.IsTick:
			s.books.Entry.Counts[r.Outcome]++
		}
	}
}

// line is the place of the nth line of a run.
func (s *spoilt) line(run string, phase audit.Phase) *audit.Write {
	for i := range s.Writes {
		if w := &s.Writes[i]; w.Run == run && w.Phase == phase {
			return w
		}
	}
	return nil
}

// silence removes a run's writes.
func (s *spoilt) silence(run string) {
	s.Writes = slices.DeleteFunc(s.Writes, func(w audit.Write) bool { return w.Run == run })
}

// respellRow changes a row that fits.
func respellRow(fits func(*ledger.Row) bool, do func(*ledger.Row)) func(*spoilt) bool {
	return func(s *spoilt) bool {
		r := s.row(fits)
		if r != nil {
			do(r)
		}
		return r != nil
	}
}

// respell changes the start of a run whose row fits, and the records it belongs to.
func respell(fits func(*ledger.Row) bool, do func(s *spoilt, r *ledger.Row, start *audit.Write)) func(*spoilt) bool {
	return func(s *spoilt) bool {
		r := s.row(fits)
		if r == nil {
			return false
		}
		start := s.line(r.Run, audit.Start)
		if start == nil {
			return false
		}
		do(s, r, start)
		return true
	}
}

// instead turns a run's tick into a tick that did not run.
func instead(outcome jobs.Outcome, reason string) func(*spoilt) bool {
	replace := respell(ran, func(s *spoilt, r *ledger.Row, _ *audit.Write) {
		s.silence(r.Run)
		*r = ledger.Row{Job: r.Job, Prev: r.Prev, Next: r.Next, At: r.At, Tick: r.Tick, Until: r.Tick, Count: 1, Ranged: true, Outcome: outcome, Reason: reason}
	})
	return func(s *spoilt) bool { return !s.job.Rewound && replace(s) } // there the tick ran once more
}

// add appends a line as another one, changed.
func (s *spoilt) add(w audit.Write, do func(*audit.Write)) {
	w.No = len(s.Writes) + 1000
	do(&w)
	s.Writes = append(s.Writes, w)
}
