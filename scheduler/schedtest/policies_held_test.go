package schedtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// window is a span in which runs held a job: from the grant of one to the end of it and of all that followed from
// it (handed back, run again after a crash).
type window struct {
	from, to int64 // by Redis' clock, ms; to is never while it is open
	busy     int64 // since when a run may have been going: those before it were handed back
	mode     string
	unclear  bool // the job was free before anybody said so: its last run was reaped, or waited and was cancelled
}

// held are a job's windows in their order, worked out from the wire.
func (t *tale) held(job string) []window {
	type moment struct {
		at time.Time
		g  *given
		e  *ending
	}
	var all []moment
	steps := t.steps()
	for i := range steps {
		if g := &steps[i]; g.job == job && g.mode != allowed {
			all = append(all, moment{at: g.at, g: g})
		}
	}
	for i := range t.ends {
		if e := &t.ends[i]; e.job == job {
			all = append(all, moment{at: e.at, e: e})
		}
	}
	for _, k := range t.kills {
		if k.job == job && k.word == ledger.Cancelled {
			all = append(all, moment{at: k.at, e: &ending{ms: k.at.Sub(t.now).Milliseconds() + t.read, run: k.run, how: "cancelled"}})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	var windows []window
	holder, began := "", false // whether a run of the window was not handed back
	for _, m := range all {
		switch {
		case m.g != nil && m.g.run == holder: // its turn has come again
			w := &windows[len(windows)-1]
			if w.mode = m.g.mode; !began {
				w.busy = m.g.ms
			}
		case m.g != nil:
			windows = append(windows, window{from: m.g.ms, busy: m.g.ms, to: never, mode: m.g.mode})
			holder, began = m.g.run, false
		case m.e.run != holder || holder == "":
		case m.e.how == "returned" && t.rowOf(job, holder) == nil, m.e.how != "returned" && m.e.how != "cancelled" && t.succeededBy(job, holder):
			holder, began = ledger.Successor(holder), began || m.e.how != "returned"
		default:
			w := &windows[len(windows)-1]
			w.to, w.unclear, holder = m.e.ms, m.e.how == "reaped" || m.e.how == "cancelled" || m.e.how == "closed badly", ""
		}
	}
	return windows
}

// succeededBy says whether another attempt followed a run by itself.
func (t *tale) succeededBy(job, run string) bool {
	fresh := ledger.Successor(run)
	if t.again[fresh] {
		return false
	}
	return t.grantOf(fresh) != nil || t.rowOf(job, fresh) != nil || slices.ContainsFunc(t.open, func(l ledger.Lease) bool { return l.Run == fresh })
}

// schedule is a job's only schedule, nil when it has none or several.
func (t *tale) schedule(name string) *jobs.Schedule {
	defs := t.defs(name)
	if defs[0].After != "" || slices.ContainsFunc(defs, func(j jobs.Job) bool { return j.Schedule != defs[0].Schedule }) {
		return nil
	}
	s, err := defs[0].ParsedSchedule()
	if err != nil {
		t.blame("%s: %v", name, err)
	}
	return s
}

// windows: ticks are skipped for overlap only while the job was held, and of the ticks that came due while a run
// with overlap queue or replace was going only the latest runs.
func (t *tale) windows() {
	for _, name := range t.names {
		s := t.schedule(name)
		if s == nil || t.trimmed(name) || t.opensBoth(name) { // rows tell which runs went on under another id
			continue
		}
		held := t.held(name)
		for _, r := range t.rows[name] {
			if !r.Ranged || r.Reason != ledger.ReasonOverlap {
				continue
			}
			for _, tick := range []int64{r.Tick, r.Until} {
				if !slices.ContainsFunc(held, func(w window) bool { return w.from <= tick && tick <= w.to }) {
					t.blame("%s: tick %d is recorded as skipped, and no run was going: %v", name, tick, held)
				}
			}
		}
		for _, g := range t.steps() {
			if g.job != name || g.pending || g.mode != "q" && g.mode != "r" || t.rewound[name] > 0 {
				continue
			}
			i := slices.IndexFunc(held, func(w window) bool { return w.from == g.ms }) - 1
			if i < 0 || held[i].mode == "s" || held[i].unclear || g.tick < held[i].busy || g.tick >= held[i].to {
				continue
			}
			if next := s.Next(time.UnixMilli(g.tick)).UnixMilli(); next < held[i].to && !t.pausedAt(name, next) {
				t.blame("%s: tick %d is granted (%s), and tick %d came due in the same busy window %v", name, g.tick, g.run, next, held[i])
			}
		}
	}
}

func (t *tale) pausedAt(job string, ms int64) bool {
	return slices.ContainsFunc(t.pauses, func(w paused) bool { return w.job == job && w.from-lateBound <= ms && ms < w.until })
}

// replaced: a run that made room had a newer tick behind it, and one that has a newer tick behind it makes room.
func (t *tale) replaced() {
	for _, g := range t.grants {
		r, e := t.rowOf(g.job, g.run), t.endOf(g.run)
		run := g.run
		if g.of != "" { // what came due since the tick was opened ends its shards
			o := t.openOf(g.of)
			if o == nil {
				continue
			}
			at := g.at
			if g = *o; r != nil && e != nil && r.Reason == ledger.ReasonReplaced && at.Before(g.at) {
				t.blame("run %s was granted before its tick was opened", run)
			}
		}
		if r != nil && r.Reason == ledger.ReasonReplaced && e != nil {
			newer := slices.ContainsFunc(t.told, func(x telling) bool {
				return x.job == g.job && g.ms <= x.ms && x.ms <= e.ms && x.outcome == "succeeded"
			})
			for _, j := range t.defs(g.job) {
				if s, err := j.ParsedSchedule(); err == nil && s != nil && j.After == "" {
					newer = newer || s.Next(time.UnixMilli(g.ms-1)).UnixMilli() <= e.ms
				}
			}
			if !newer {
				t.blame("%s: run %s was replaced, and nothing had come due since it was granted", g.lineage(), run)
			}
		}
		all := !slices.ContainsFunc(t.defs(g.job), func(j jobs.Job) bool { return j.Overlap != jobs.OverlapReplace })
		s := t.schedule(g.job)
		if !all || s == nil || t.plan.Config.MaxRunning > 0 || g.pending || s.Next(time.UnixMilli(g.tick)).UnixMilli() <= g.ms {
			continue // or a tick that is only late waits before the newer one
		}
		tick := s.Next(time.UnixMilli(g.ms)).UnixMilli()
		if at := g.at.Add(time.Duration(tick-g.ms) * time.Millisecond); !t.pausedAt(g.job, tick) {
			if own := t.grantOf(run); !own.at.After(at) {
				t.stops(run, *own, at, "a newer tick came due")
			}
		}
	}
}
