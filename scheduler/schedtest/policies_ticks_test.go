package schedtest

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// reach is a stretch of a job's ticks under one schedule.
type reach struct {
	schedule *jobs.Schedule
	from     int64 // the first tick
	until    int64 // behind the last one
}

// accounted walks each job's schedule, tick by tick, and counts who answers for the tick: a step of the cursor
// that ran it, one that passed it, or the cursor, which has not come to it. That must be one, and one more
// for each time that the cursor was set back over it.
func (t *tale) accounted() {
	for _, name := range t.names {
		e, there := t.entries[name]
		if !there || t.defs(name)[0].After != "" || t.trimmed(name) && t.rewound[name] > 0 {
			continue
		}
		if e.Base == 0 {
			t.blame("%s: the chain begins nowhere", name)
			continue
		}
		stretches := t.stretches(name, e)
		if len(stretches) > 1 && t.rewound[name] > 0 || len(stretches) == 0 {
			continue
		}
		t.walk(name, e, stretches)
	}
}

// stretches are a job's schedules and for which ticks they counted.
func (t *tale) stretches(name string, e ledger.Stored) []reach {
	var all []reach
	from := e.Base
	add := func(text, zone string, until int64) bool {
		s, err := jobs.ParseScheduleFor(name, text, zone)
		if err != nil {
			t.blame("%s: the schedule %q: %v", name, text, err)
			return false
		}
		all = append(all, reach{s, from, until})
		return true
	}
	for _, r := range t.rows[name] {
		if !r.Ranged || r.Reason != ledger.ReasonReplacedDef || r.Next < e.Base {
			continue
		}
		until := r.Prev
		if r.Count > 0 {
			until = r.Until + 1
		}
		if !add(r.Note, "", until) {
			return nil
		}
		from = r.Next
	}
	def, err := jobs.ParseDefinition(e.Definition)
	if err != nil || !add(def.Schedule, def.TimeZone, never) {
		t.blame("%s: its definition cannot be read: %v", name, err)
		return nil
	}
	if len(t.plan.Versions) == 0 || !slices.ContainsFunc(t.defs(name), func(j jobs.Job) bool { return j.Schedule != t.defs(name)[0].Schedule }) {
		return []reach{{all[0].schedule, e.Base, never}} // only policies changed
	}
	return all
}

func (t *tale) walk(name string, e ledger.Stored, stretches []reach) {
	answers := make(map[int64]int)
	type span struct{ from, until int64 }
	var back []span
	for _, r := range t.rows[name] {
		switch {
		case r.Ranged && r.Reason == ledger.ReasonRewound:
			back = append(back, span{r.Next, r.Prev})
		case r.Ranged && r.Prev != 0 && r.Count > 0:
			s := stretches[0].schedule
			for _, x := range stretches {
				if x.from <= r.Tick && r.Tick < x.until {
					s = x.schedule
				}
			}
			n := int64(0)
			for at := s.Next(time.UnixMilli(r.Tick - 1)); !at.IsZero() && at.UnixMilli() <= r.Until; at = s.Next(at) {
				answers[at.UnixMilli()]++
				n++
			}
			if n != r.Count {
				t.blame("%s: %d ticks from %d to %d are %s, and the schedule has %d", name, r.Count, r.Tick, r.Until, r.Outcome, n)
			}
		case !r.Ranged && r.Prev != 0:
			answers[r.Tick]++
		}
	}
	for _, l := range t.open {
		if l.Job == name && l.Prev != 0 {
			answers[l.Tick]++
		}
	}
	for _, x := range stretches {
		for at := x.schedule.Next(time.UnixMilli(x.from - 1)); at.UnixMilli() < min(x.until, max(e.Cursor, t.read)); at = x.schedule.Next(at) {
			tick, want := at.UnixMilli(), 1
			for _, b := range back {
				if b.from <= tick && tick < b.until {
					want++
				}
			}
			n := answers[tick]
			delete(answers, tick)
			if tick >= e.Cursor && x.until == never {
				n++
			}
			if n != want {
				t.blame("%s: tick %d is answered for %d times and not %d", name, tick, n, want)
			}
		}
	}
	for tick := range answers {
		if tick >= e.Base {
			t.blame("%s: tick %d is answered for, and no schedule has it", name, tick)
		}
	}
}

// late is how late ticks may be and still run in their order, ms.
const lateBound = 10_000

// reasons: what a row says of ticks that did not run can be true.
func (t *tale) reasons() {
	skew := t.plan.withDefaults().Config.MaxSkew.Milliseconds() + 50
	for _, name := range t.names {
		defs := t.defs(name)
		some := func(ok func(jobs.Job) bool) bool { return slices.ContainsFunc(defs, ok) }
		within := never
		for _, j := range defs {
			if j.StartWithin > 0 {
				within = min(within, j.StartWithin.Milliseconds())
			}
		}
		for _, r := range t.rows[name] {
			if !r.Ranged {
				continue
			}
			var ok bool
			switch r.Reason {
			case ledger.ReasonLate:
				ok = some(func(j jobs.Job) bool { return j.CatchUp != jobs.CatchUpAll }) && r.At-r.Tick > lateBound-skew
				if !some(func(j jobs.Job) bool { return j.CatchUp == jobs.CatchUpLatest }) {
					ok = ok && r.At-r.Until > lateBound-skew
				}
			case ledger.ReasonCatchUpMax:
				ok = some(func(j jobs.Job) bool { return j.CatchUp == jobs.CatchUpAll }) && r.At-r.Until > lateBound-skew
			case ledger.ReasonStartWithin:
				ok = defs[0].After != "" && within < never || r.At-r.Until > within-skew
			case ledger.ReasonPaused:
				ok = slices.ContainsFunc(t.pauses, func(w paused) bool {
					return w.job == name && w.from <= r.At+skew && (defs[0].After != "" || r.Until < w.until)
				})
			case ledger.ReasonOverlap:
				ok = some(func(j jobs.Job) bool { return j.Overlap != jobs.OverlapAllow })
			case ledger.ReasonUpstream:
				ok = defs[0].After != "" && r.Note != "" && r.Note != "succeeded"
			case ledger.ReasonReplacedDef:
				ok = len(t.plan.Versions) > 0
			case ledger.ReasonRewound:
				ok = t.rewound[name] > 0
			}
			if !ok {
				t.blame("%s: ticks from %d to %d, recorded at %d as %s for %q: that cannot be", name, r.Tick, r.Until, r.At, r.Outcome, r.Reason)
			}
		}
	}
}

// paused: while a job is paused nothing starts but what people asked for, and shards of a tick that is open, and the ticks of that time never do.
func (t *tale) paused() {
	for _, g := range t.steps() {
		for _, w := range t.pauses {
			if w.job != g.job || g.request != "" || t.again[g.run] {
				continue
			}
			if w.from < g.ms && g.ms < w.until {
				t.blame("%s: granted to %s at %d while the job was paused", g.lineage(), g.run, g.ms)
			}
			if !g.pending && w.from < g.tick && g.tick < w.until && g.ms > w.from && t.rewound[g.job] == 0 {
				t.blame("%s: granted to %s, and the job was paused then", g.lineage(), g.run)
			}
		}
	}
}

// started: no tick is granted later than its job says.
func (t *tale) started() {
	steps := t.steps()
	slack := t.plan.withDefaults().Config.MaxSkew.Milliseconds() + 50
	for _, g := range steps {
		within, all := int64(0), true
		for _, j := range t.defs(g.job) {
			within, all = max(within, j.StartWithin.Milliseconds()), all && j.StartWithin > 0
		}
		due := g.tick
		if g.trigger == jobs.TriggerAfter.String() {
			for _, x := range t.told {
				if x.job == g.job && x.tick == g.tick && x.outcome == "succeeded" {
					due = x.ms
				}
			}
		}
		fresh := !g.pending || g.trigger == jobs.TriggerAfter.String() && !slices.ContainsFunc(steps, func(o given) bool {
			return o.lineage() == g.lineage() && o.at.Before(g.at)
		})
		if all && fresh && g.ms-due > within+slack {
			t.blame("%s: granted %d ms after it was due, and it may start within %d", g.lineage(), g.ms-due, within)
		}
	}
}
