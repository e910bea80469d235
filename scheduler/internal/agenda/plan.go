package agenda

import (
	"math"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// catchUpBound is how late a tick may be and still run in its order; beyond it the catch-up
// policy decides.
const catchUpBound = 10 * time.Second

// step is one move of a cursor: passes are the ticks from the cursor on that will not run, tick is
// the one behind them that is run, next is where the cursor goes. Instants are ms, 0 for none.
type step struct {
	passes     []ledger.SkippedRange
	tick, next int64
	trigger    jobs.Trigger
}

// outlook is what of a job's state in the ledger a plan depends on, besides the cursor.
type outlook struct{ pause, busy ledger.Window }

// plan decides what to do with a job whose cursor is due at Redis' time now. It goes through the due
// ticks in order, up to the first that runs. A tick fares by the first line that is true of it:
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
// There is a gap when the first tick to come to the fourth line is later than catchUpBound. Each line
// but the first makes at most one stretch of ticks, and the two windows cut at most one of these each in
// two, so a step never has more than six passes. The cursor counts as a tick even when the schedule, by this
// node's zone data, has none there.
func plan(j jobs.Job, s *jobs.Schedule, cursor int64, o outlook, now int64) step {
	p := planner{
		schedule: s, cursor: cursor, now: now, outlook: o,
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
		f := p.fateOf(at)
		if f.until <= at {
			return step{passes: p.passes, tick: at, next: p.after(at), trigger: f.trigger}
		}
		at = p.pass(at, f)
	}
	return step{passes: p.passes, next: at}
}

// planner is one plan in the making.
type planner struct {
	schedule    *jobs.Schedule
	cursor, now int64
	outlook
	startWithin int64 // ms
	catchUp     jobs.CatchUp
	catchUpMax  int64

	passes []ledger.SkippedRange
	kept   int64 // catch_up gives up no tick from this instant on; 0: not asked yet
	caught jobs.Trigger
}

// fate is what becomes of a tick: it runs if until is not after it, else it does not, nor does any
// other before until in the same windows.
type fate struct {
	outcome jobs.Outcome
	reason  string
	until   int64
	trigger jobs.Trigger
}

// givenUp says whether catch_up gives the tick up.
func (f fate) givenUp() bool {
	return f.outcome == jobs.OutcomeMissed && f.reason != ledger.ReasonStartWithin
}

// fateOf judges the first tick that nothing was decided about yet.
func (p *planner) fateOf(at int64) fate {
	switch {
	case p.pause.Holds(at):
		return fate{outcome: jobs.OutcomePaused, reason: ledger.ReasonPaused, until: p.end(p.pause)}
	case p.now-at > p.startWithin:
		return fate{outcome: jobs.OutcomeMissed, reason: ledger.ReasonStartWithin, until: p.now - p.startWithin}
	case p.busy.Holds(at):
		_, latest := p.count(at, p.end(p.busy), p.pause)
		return fate{outcome: jobs.OutcomeSkipped, reason: ledger.ReasonOverlap, until: latest}
	}
	if p.kept == 0 {
		p.kept, p.caught = p.keep(at)
	}
	f := fate{outcome: jobs.OutcomeMissed, reason: ledger.ReasonLate, until: p.kept, trigger: p.caught}
	if p.catchUp == jobs.CatchUpAll {
		f.reason = ledger.ReasonCatchUpMax
	}
	return f
}

// keep asks the catch-up policy from which instant on it keeps ticks, and as what the first of them
// runs. at is the first tick that it has a say in.
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
	// A busy tick runs by a rule of its own, but it is newer, and the ones before it are missed for it.
	_, latest := p.count(at, p.now+1, p.pause)
	return latest, jobs.TriggerCatchUp
}

// newest returns where the newest n ticks of [from, before) outside the windows begin. It looks ever
// further back from the end, because counting costs by the day.
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
	low, high := before-span, before // enough, and not enough
	for high-low > 1 {
		if mid := low + (high-low)/2; enough(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// pass notes that the ticks from at on do not run, as far as f reaches and no window begins, and
// returns the tick behind them. The ledger, which knows no schedules, takes no pass that reaches over
// a pause, even if no tick lies in it.
func (p *planner) pass(at int64, f fate) int64 {
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
		if !over(p.pause) && !(f.givenUp() && over(p.busy)) { // the ledger refuses it: it knows no schedule
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
		end := max(w.From, p.end(w)) // no window has less than no length, whatever Redis' clock did meanwhile
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

// end is where the due part of a window ends.
func (p *planner) end(w ledger.Window) int64 {
	if w.To == 0 {
		return p.now + 1
	}
	return min(w.To, p.now+1)
}

// after is the tick after an instant, 0 for none.
func (p *planner) after(at int64) int64 { return work.Millis(p.schedule.Next(time.UnixMilli(at))) }
