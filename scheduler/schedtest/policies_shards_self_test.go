package schedtest

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// ofTick is a shard's grant whose tick was closed.
func ofTick(t *tale) func(given) bool {
	return func(g given) bool { return g.of != "" && t.rowOf(g.job, g.of) != nil && t.endOf(g.of) != nil }
}

func wholeRow(ok func(ledger.Row) bool) func(ledger.Row) bool {
	return func(r ledger.Row) bool { return r.Whole && ok(r) }
}

func anyRow(ledger.Row) bool { return true }

// tamperedShards are ways to falsify what a play showed of sharded ticks, as tampered are.
var tamperedShards = map[string]func(*tale) bool{
	": MIXED: a shard of": func(t *tale) bool { return find(t.grants, ofTick(t), func(g *given) { g.shards++ }) },
	"shards is closed when": func(t *tale) bool {
		return t.drop(func(r ledger.Row) bool { return r.Of != "" && succeeded(r) && t.rowOf(r.Job, r.Of) != nil })
	},
	", and the worst of its shards is succeeded": func(t *tale) bool {
		return t.row(wholeRow(func(r ledger.Row) bool { return r.Outcome == jobs.OutcomeSucceeded }), func(r *ledger.Row) { r.Outcome = jobs.OutcomeFailed })
	},
	", and the worst of its shards is failed": func(t *tale) bool {
		return t.row(wholeRow(func(r ledger.Row) bool { return r.Outcome == jobs.OutcomeFailed }), func(r *ledger.Row) { r.Outcome, r.Reason = jobs.OutcomeSucceeded, "" })
	},
	"it is neither open nor closed before": func(t *tale) bool { return t.drop(wholeRow(anyRow)) },
	" was closed":                          func(t *tale) bool { return find(t.grants, ofTick(t), func(g *given) { g.ms += 99_000 }) },
	" is granted after its tick ": func(t *tale) bool {
		return find(t.grants, ofTick(t), func(g *given) { t.kills = append(t.kills, killed{g.at.Add(-sec), g.job, g.of, ledger.Told}) })
	},
	"works on 2.5s after its tick was cancelled": func(t *tale) bool {
		return find(t.calls, func(k *called) bool {
			g := t.grantOf(k.run.ID())
			return !k.stubborn && g != nil && g.of != ""
		}, func(k **called) {
			t.disturbed, t.now = nil, t.now.Add(time.Hour)
			(*k).ended = (*k).began.Add(time.Minute)
			t.kills = append(t.kills, killed{(*k).began, (*k).run.Job(), t.grantOf((*k).run.ID()).of, ledger.Told})
		})
	},
	"was granted before its tick was opened": func(t *tale) bool {
		return find(t.grants, func(g given) bool {
			r := t.rowOf(g.job, g.run)
			return g.of != "" && r != nil && r.Reason == ledger.ReasonReplaced && t.endOf(g.run) != nil
		}, func(g *given) { g.at = g.at.Add(-time.Hour) })
	},
}
