package agenda

import (
	"math"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// catchUpBound is how late a tick may be and still run in order. Beyond it the catch-up policy
// decides.
const catchUpBound = 10 * time.Second

// step is one move of a cursor. passes are the ticks from the cursor on that will not run, tick is
// the one behind them that runs, next is the new cursor. Instants are ms, 0 for none.
type step struct {
	passes     []ledger.SkippedRange
	tick, next int64
	trigger    jobs.Trigger
}

// windows are the spans of time in a job's entry on which a plan depends.
type windows struct{ pause, busy ledger.Window }

// busyUntil is the last instant at which the job was busy, ms. The window's end is Redis' time,
// which may be ahead of this node's estimate by skew. A window that reaches farther was stored by a
// clock that was taken back: the ledger reads it as now at most.
func (w windows) busyUntil(now int64, skew time.Duration) int64 {
	end := w.busy.To - 1
	//guard:busy-planned P2 a job goes on after a clock that was taken back, whatever that clock stored
	if end > now+skew.Milliseconds() {
		end = now
	}
	return end
}

// plan decides what to do with a job whose cursor is due at Redis' time now. It goes through the
// due ticks in order, up to the first that runs. The first line that applies to a tick decides:
//
//	in the pause                              paused
//	later than start_within                   missed(start_within)
//	busy, with overlap queue or replace       the latest busy one runs, those before it are skipped(overlap)
//	behind no gap                             runs
//	behind one, and catch_up is latest        the newest runs, those before it are missed(late)
//	                            none          missed(late) if itself later than catchUpBound; else it runs
//	                            all           of those later than that the newest CatchUpMax run,
//	                                          those before them are missed(catch_up_max)
//
// There is a gap when the first tick that reaches the fourth line is later than catchUpBound. Each
// line but the first makes at most one range of ticks, and each of the two windows cuts at most one
// range in two. So a step has at most six passes. The cursor counts as a tick even when this node's
// zone data has none there.
func plan(j jobs.Job, s *jobs.Schedule, cursor int64, o windows, now int64) step {
	p := planner{
		schedule: s, cursor: cursor, now: now, windows: o,
		startWithin: math.MaxInt64, catchUp: j.CatchUp, catchUpMax: int64(j.CatchUpMax),
	}
	if j.StartWithin > 0 {
		p.startWithin = j.StartWithin.Milliseconds()
	}
	if j.Overlap != jobs.OverlapQueue && j.Overlap != jobs.OverlapReplace {
		p.busy = ledger.Window{}
	}
	at := cursor
	for at != 0 && at <= now {
		f := p.decide(at)
		if f.until <= at {
			return step{passes: p.passes, tick: at, next: p.after(at), trigger: f.trigger}
		}
		at = p.pass(at, f)
	}
	return step{passes: p.passes, next: at}
}

// planner computes one plan.
type planner struct {
	schedule    *jobs.Schedule
	cursor, now int64
	windows
	startWithin int64 // ms
	catchUp     jobs.CatchUp
	catchUpMax  int64

	passes      []ledger.SkippedRange
	keptFrom    int64 // catch_up keeps the ticks from this instant on; 0: not computed yet
	keptTrigger jobs.Trigger
}

// decision is a tick's fate. The tick runs if until is not after it. Else neither it nor
// any other tick before until in the same windows runs.
type decision struct {
	outcome jobs.Outcome
	reason  string
	until   int64
	trigger jobs.Trigger
}

// givenUp reports whether catch_up gave the tick up.
func (f decision) givenUp() bool {
	return f.outcome == jobs.OutcomeMissed && f.reason != ledger.ReasonStartWithin
}

// decide judges the first tick that no pass covers yet.
func (p *planner) decide(at int64) decision {
	switch {
	case p.pause.Holds(at):
		return decision{outcome: jobs.OutcomePaused, reason: ledger.ReasonPaused, until: p.end(p.pause)}
	case p.now-at > p.startWithin:
		return decision{outcome: jobs.OutcomeMissed, reason: ledger.ReasonStartWithin, until: p.now - p.startWithin}
	case p.busy.Holds(at):
		_, latest := p.count(at, p.end(p.busy), p.pause)
		return decision{outcome: jobs.OutcomeSkipped, reason: ledger.ReasonOverlap, until: latest}
	}
	if p.keptFrom == 0 {
		p.keptFrom, p.keptTrigger = p.keep(at)
	}
	f := decision{outcome: jobs.OutcomeMissed, reason: ledger.ReasonLate, until: p.keptFrom, trigger: p.keptTrigger}
	if p.catchUp == jobs.CatchUpAll {
		f.reason = ledger.ReasonCatchUpMax
	}
	return f
}

// keep returns from which instant on the catch-up policy keeps ticks, and the trigger of the first
// of them. at is the first tick that the policy decides about.
func (p *planner) keep(at int64) (int64, jobs.Trigger) {
	bound := p.now - catchUpBound.Milliseconds()
	switch {
	case at >= bound:
		return at, jobs.TriggerSchedule
	case p.catchUp == jobs.CatchUpNone:
		return bound, jobs.TriggerSchedule
	case p.catchUp == jobs.CatchUpAll:
		return p.newest(p.catchUpMax, at, bound), jobs.TriggerCatchUp
	}
	// A busy tick runs by its own rule, but it is newer: the ticks before it are missed.
	_, latest := p.count(at, p.now+1, p.pause)
	return latest, jobs.TriggerCatchUp
}

// newest returns the instant at which the newest n ticks of [from, before) outside the windows
// begin. It searches backwards from the end, because counting costs by the day.
func (p *planner) newest(n, from, before int64) int64 {
	enough := func(at int64) bool {
		k, _ := p.count(at, before, p.pause, p.busy)
		return k >= n
	}
	span := int64(1000)
	for !enough(before - span) {
		if before-span <= from {
			return from
		}
		span *= 2
	}
	low, high := before-span, before // low has enough, high has not
	for high-low > 1 {
		if mid := low + (high-low)/2; enough(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// pass notes that the ticks from at on do not run, up to the decision's end or the next window. It
// returns the tick behind them. The ledger has no schedules, so it refuses a range that spans a
// pause, even an empty one.
func (p *planner) pass(at int64, f decision) int64 {
	for _, w := range []ledger.Window{p.pause, p.busy} {
		if w.From > at {
			f.until = min(f.until, w.From)
		}
	}
	n, last := p.count(at, f.until)
	next := p.after(last)
	if k := len(p.passes) - 1; k >= 0 && p.passes[k].Reason == f.reason {
		before := &p.passes[k]
		over := func(w ledger.Window) bool { return before.Last < w.From && w.From <= at }
		if !over(p.pause) && !(f.givenUp() && over(p.busy)) { // the ledger would refuse a range that spans the window
			before.Last, before.Count, before.Next = last, before.Count+n, next
			return next
		}
	}
	p.passes = append(p.passes, ledger.SkippedRange{Outcome: f.outcome, Reason: f.reason, First: at, Last: last, Count: n, Next: next})
	return next
}

// count returns how many ticks of [from, before) lie outside the windows, and the last of them.
func (p *planner) count(from, before int64, without ...ledger.Window) (n, last int64) {
	if from >= before {
		return 0, 0
	}
	if len(without) > 0 {
		w, rest := without[0], without[1:]
		end := max(w.From, p.end(w)) // a window never has a negative length, whatever Redis' clock did
		if w.From == 0 || w.From >= before || end <= from {
			return p.count(from, before, rest...)
		}
		n, last = p.count(from, w.From, rest...)
		k, behind := p.count(end, before, rest...)
		return n + k, max(last, behind)
	}
	if from <= p.cursor && p.cursor < before {
		n, last, from = 1, p.cursor, p.cursor+1
	}
	k, newest := p.schedule.Count(time.UnixMilli(from), time.UnixMilli(before))
	return n + int64(k), max(last, work.Millis(newest))
}

// end is the end of the part of a window that is due.
func (p *planner) end(w ledger.Window) int64 {
	if w.To == 0 {
		return p.now + 1
	}
	return min(w.To, p.now+1)
}

// after is the first tick after an instant, 0 for none.
func (p *planner) after(at int64) int64 { return work.Millis(p.schedule.Next(time.UnixMilli(at))) }
