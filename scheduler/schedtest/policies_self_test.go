package schedtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// clone is a tale that can be tampered with.
func (t *tale) clone() *tale {
	c := &tale{
		seed: t.seed, plan: t.plan, grants: slices.Clone(t.grants), opens: slices.Clone(t.opens), ends: slices.Clone(t.ends), follows: t.follows, told: slices.Clone(t.told),
		pauses: slices.Clone(t.pauses), asked: slices.Clone(t.asked), kills: slices.Clone(t.kills), again: t.again, rewound: t.rewound,
		names: t.names, rows: make(map[string][]ledger.Row), open: slices.Clone(t.open), entries: maps.Clone(t.entries), events: t.events,
		writes: slices.Clone(t.writes), spared: t.spared, disturbed: t.disturbed, read: t.read, now: t.now,
	}
	for _, k := range t.calls {
		copied := *k
		c.calls = append(c.calls, &copied)
	}
	for name, rows := range t.rows {
		c.rows[name] = slices.Clone(rows)
	}
	c.plan.Jobs = slices.Clone(t.plan.Jobs)
	return c
}

// find gives the first of a list that is as asked for to f, and says whether there was one.
func find[T any](list []T, ok func(T) bool, f func(*T)) bool {
	i := slices.IndexFunc(list, ok)
	if i >= 0 {
		f(&list[i])
	}
	return i >= 0
}

// row gives the first row of any job that is as asked for to f.
func (t *tale) row(ok func(ledger.Row) bool, f func(*ledger.Row)) bool {
	return slices.ContainsFunc(t.names, func(name string) bool { return !t.trimmed(name) && find(t.rows[name], ok, f) })
}

func (t *tale) drop(ok func(ledger.Row) bool) bool {
	for _, name := range t.names {
		if i := slices.IndexFunc(t.rows[name], ok); i >= 0 && !t.trimmed(name) {
			t.rows[name] = slices.Delete(t.rows[name], i, i+1)
			return true
		}
	}
	return false
}

func (t *tale) double(ok func(ledger.Row) bool) bool {
	return t.row(ok, func(r *ledger.Row) { t.rows[r.Job] = append(t.rows[r.Job], *r) })
}

func (t *tale) follower(name string) bool { return t.defs(name)[0].After != "" }

func succeeded(r ledger.Row) bool {
	return r.Outcome == jobs.OutcomeSucceeded && r.Attempt == 1 && r.Request == ""
}
func stepped(r ledger.Row) bool { return succeeded(r) && r.Prev != 0 && r.Trigger == "schedule" }
func scheduled(g given) bool    { return g.trigger == "schedule" && !g.pending && g.attempt == 1 }

// tampered are ways to falsify what a play showed, by what must be found then. Each says whether there was
// something to falsify.
var tampered = map[string]func(*tale) bool{
	"are counted as succeeded, and the rows have": func(t *tale) bool { return t.drop(succeeded) },
	"was begun while it was going": func(t *tale) bool {
		return find(t.writes, func(w verify.Write) bool { return w.Phase == verify.Start }, func(w *verify.Write) { t.writes = slices.Insert(t.writes, 1, t.writes[0], *w) })
	},
	": try 99 of ": func(t *tale) bool { return t.tried(99, false) },
	"another try after one that ended with <nil>": func(t *tale) bool { return t.tried(2, true) },
	", and the job's timeout is ": func(t *tale) bool {
		return find(t.calls, func(k *called) bool { _, all := t.timeout(k.run.Job()); return all && !k.stubborn && !k.ended.IsZero() },
			func(k **called) { (*k).ended = (*k).ended.Add(5 * sec) })
	},
	"goes on": func(t *tale) bool {
		return find(t.grants, scheduled, func(g *given) {
			t.ends = slices.DeleteFunc(t.ends, func(e ending) bool { return e.run == g.run })
			t.regrant(*g, "other", 2)
		})
	},
	" is granted after attempt 1": func(t *tale) bool { return find(t.grants, ended(t), func(g *given) { t.regrant(*g, "other", 1) }) },
	" and as other": func(t *tale) bool {
		return find(t.grants, ended(t), func(g *given) {
			t.regrant(*g, "other", 1)
			find(t.writes, func(w verify.Write) bool { return w.Run == g.run && w.Phase == verify.Start }, func(w *verify.Write) {
				x := *w
				x.Run = "other"
				t.writes = append(t.writes, x)
			})
		})
	},
	"the ledger has no such run": func(t *tale) bool { return t.drop(succeeded) },
	"begun otherwise than it was granted": func(t *tale) bool {
		return find(t.writes, func(w verify.Write) bool { return w.Phase == verify.Start }, func(w *verify.Write) { w.Token++ })
	},
	"after 7 tries": func(t *tale) bool { return t.row(succeeded, func(r *ledger.Row) { r.Tries = 7 }) },
	"was begun and handed back": func(t *tale) bool {
		return find(t.ends, func(e ending) bool { return e.outcome == "succeeded" }, func(e *ending) { e.how = "returned" })
	},
	"and was never granted":                   func(t *tale) bool { return t.row(succeeded, func(r *ledger.Row) { r.Token = 0 }) },
	"is recorded as failed, and its function": func(t *tale) bool { return t.row(succeeded, func(r *ledger.Row) { r.Outcome = jobs.OutcomeFailed }) },
	"its function has not returned": func(t *tale) bool {
		return find(t.calls, func(k *called) bool { return t.rowOf(k.run.Job(), k.run.ID()) != nil }, func(k **called) { (*k).ended = time.Time{} })
	},
	", at most ": func(t *tale) bool {
		return find(t.grants, scheduled, func(g *given) { g.trigger, g.attempt = "rerun", 9 })
	},
	"after one that is succeeded": func(t *tale) bool { return find(t.grants, ended(t), func(g *given) { t.regrant(*g, "other", 2) }) },
	"is granted after it was cancelled": func(t *tale) bool {
		return find(t.grants, scheduled, func(g *given) { t.kills = append(t.kills, killed{g.at.Add(-sec), g.job, g.run, ledger.Cancelled}) })
	},
	"works on 2.5s after it was cancelled": func(t *tale) bool {
		return find(t.calls, func(k *called) bool { return !k.stubborn && k.ended.Sub(k.began) > 3*sec }, func(k **called) {
			t.disturbed = nil
			t.kills = append(t.kills, killed{(*k).began, (*k).run.Job(), (*k).run.ID(), ledger.Told})
		})
	},
	"was promised, and there is none": func(t *tale) bool {
		t.asked = append(t.asked, asking{t.names[0], "nobody", 0})
		return !t.trimmed(t.names[0])
	},
	"is answered for 0 times and not 1":       func(t *tale) bool { return t.drop(stepped) },
	"is answered for 2 times and not 1":       func(t *tale) bool { return t.double(stepped) },
	"is answered for, and no schedule has it": func(t *tale) bool { return t.row(stepped, func(r *ledger.Row) { r.Tick += 7 }) },
	", and the schedule has ": func(t *tale) bool {
		return t.row(func(r ledger.Row) bool { return r.Ranged && r.Prev != 0 && r.Outcome == jobs.OutcomeSkipped }, func(r *ledger.Row) { r.Count++ })
	},
	`as missed for "late": that cannot be`: func(t *tale) bool {
		return t.row(func(r ledger.Row) bool { return r.Ranged && r.Outcome == jobs.OutcomeSkipped }, func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeMissed, ledger.ReasonLate })
	},
	"while the job was paused": func(t *tale) bool {
		return find(t.grants, scheduled, func(g *given) { t.pauses = append(t.pauses, paused{g.job, g.ms - 1, g.ms + 1}) })
	},
	"and the job was paused then": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return scheduled(g) && g.ms > g.tick }, func(g *given) { t.pauses = append(t.pauses, paused{g.job, g.tick - 1, g.tick + 1}) })
	},
	"and it may start within": func(t *tale) bool {
		return find(t.plan.Jobs, func(j jobs.Job) bool { return j.StartWithin > 0 && len(t.plan.Versions) == 0 && j.After == "" }, func(j *jobs.Job) {
			find(t.grants, func(g given) bool { return g.job == j.Name && scheduled(g) }, func(g *given) { g.ms += 99_000 })
		})
	},
	"and so late it should not have run": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return t.catchUp(g) && t.defs(g.job)[0].CatchUp != jobs.CatchUpAll }, func(g *given) { g.ms += 60_000 })
	},
	"ticks are made up for": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return t.catchUp(g) && t.defs(g.job)[0].CatchUp == jobs.CatchUpAll }, func(g *given) { g.ms += 60_000 })
	},
	"is recorded as skipped, and no run was going": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return scheduled(g) && t.schedule(g.job) != nil }, func(g *given) {
			t.rows[g.job] = append(t.rows[g.job], ledger.Row{Job: g.job, Ranged: true, Reason: ledger.ReasonOverlap, Tick: 1, Until: 1, Outcome: jobs.OutcomeSkipped})
		})
	},
	"came due in the same busy window": func(t *tale) bool { return t.hasty() },
	"works on 2.5s after a newer tick came due": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return g.mode == "r" && scheduled(g) }, func(g *given) {
			t.disturbed = nil
			find(t.calls, func(k *called) bool { return k.run.ID() == g.run }, func(k **called) { (*k).ended = (*k).began.Add(time.Minute); (*k).stubborn = false })
		})
	},
	"was replaced, and nothing had come due": func(t *tale) bool {
		return find(t.grants, func(g given) bool {
			s, e := t.schedule(g.job), t.endOf(g.run)
			return scheduled(g) && s != nil && e != nil && t.rowOf(g.job, g.run) != nil && s.Next(time.UnixMilli(g.ms-1)).UnixMilli() > e.ms
		}, func(g *given) { t.rowOf(g.job, g.run).Reason = ledger.ReasonReplaced })
	},
	", and there is no answer": func(t *tale) bool {
		return t.drop(func(r ledger.Row) bool { return t.follower(r.Job) && succeeded(r) })
	},
	" is answered 2 times": func(t *tale) bool {
		return t.double(func(r ledger.Row) bool { return r.Reason == ledger.ReasonUpstream && r.Count == 1 })
	},
	"has not succeeded at that tick": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return t.follower(g.job) && g.request == "" }, func(g *given) { g.tick++ })
	},
	"it ran for tick": func(t *tale) bool {
		return find(t.grants, func(g given) bool { return t.follower(g.job) && g.attempt == 1 }, func(g *given) {
			r := t.rowsOf(t.defs(g.job)[0].After, g.tick)
			if r != nil {
				r.Outcome = jobs.OutcomeFailed
			}
		})
	},
}

func (t *tale) rowsOf(job string, tick int64) *ledger.Row {
	for i, r := range t.rows[job] {
		if !r.Ranged && r.Tick == tick && r.Request == "" {
			return &t.rows[job][i]
		}
	}
	return nil
}

func ended(t *tale) func(given) bool {
	return func(g given) bool {
		e := t.endOf(g.run)
		return scheduled(g) && e != nil && e.outcome == "succeeded"
	}
}

func (t *tale) regrant(g given, run string, attempt int) {
	g.run, g.attempt, g.at, g.trigger = run, attempt, t.now, "rerun"
	t.grants = append(t.grants, g)
}

// tried adds a call of a function that succeeded.
func (t *tale) tried(try int, retries bool) bool {
	return find(t.calls, func(k *called) bool {
		return k.err == nil && !k.ended.IsZero() && (!retries || t.most(k.run.Job(), func(j jobs.Job) int { return j.Retry.Max }) > 0)
	}, func(k **called) {
		r := (*k).run
		t.calls = append(t.calls, &called{run: jobs.NewRun(jobs.RunInfo{ID: r.ID(), Job: r.Job(), Tick: r.Tick(), Attempt: 1, Try: try}), began: t.now, ended: t.now})
	})
}

// hasty has the first tick of a busy window run, and not the latest.
func (t *tale) hasty() bool {
	for i, g := range t.grants {
		s := t.schedule(g.job)
		if s == nil || g.pending || g.mode != "q" && g.mode != "r" || t.rewound[g.job] > 0 {
			continue
		}
		held := t.held(g.job)
		at := slices.IndexFunc(held, func(w window) bool { return w.from == g.ms }) - 1
		if at < 0 || held[at].mode == "s" || held[at].unclear {
			continue
		}
		first := s.Next(time.UnixMilli(held[at].busy - 1))
		if second := s.Next(first).UnixMilli(); second < held[at].to && !t.pausedAt(g.job, second) {
			t.grants[i].tick = first.UnixMilli()
			return true
		}
	}
	return false
}

// A mended cluster in which something waits is not in order.
func TestIdleCanFail(t *testing.T) {
	p, told := policiesPlan(2)
	p.Config.MaxRunning = 0
	told.plan, told.ends, told.grants = p, nil, nil
	name := p.Jobs[0].Name
	for want, open := range map[string][]ledger.Lease{
		"nobody looks at its cursor":                  nil,
		"a run has waited since 1":                    {{Job: name, Run: "x", Granted: 1}},
		"nothing has run since everything was mended": nil,
	} {
		told.broken = nil
		told.idleJob(ledger.Stored{Entry: ledger.Entry{Job: name, Cursor: 1}}, open, 99_000, time.Time{})
		if got := strings.Join(told.broken, "\n"); !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
