package ledger

import "github.com/escapement/escapement/jobs"

// books compares the rows and the runs in flight with what was answered: each run stands there
// as it ended, once, and every live one is in flight.
func (p *promises) books(rows map[string][]Row, open []Lease) {
	for job, list := range rows {
		for _, row := range list {
			w := p.runs[row.Run]
			switch {
			case row.Ranged, row.Whole && p.opened[row.Run]:
			case row.Of != "" && row.Outcome == jobs.OutcomeCancelled && row.Token == 0 && w == nil &&
				(p.wished[row.Of] == string(Told) || row.Reason == ReasonReplaced): // the whole tick, before it began
			case row.Outcome == jobs.OutcomeCancelled && (row.Token == 0 && w == nil && p.wished[row.Run] == string(Cancelled) ||
				row.Tries == 0 && w != nil && w.state == "returned"): // before it began
			case w == nil || w.job != job || w.token != row.Token || w.state != row.Outcome.String():
				p.bad("P2: %s has a row of run %s, %s, token %d; granted and answered was %+v", job, row.Run, row.Outcome, row.Token, w)
			case row.Outcome == jobs.OutcomeAbandoned && row.Late == "abandoned":
				p.bad("P2: run %s contradicts itself", row.Run)
			}
		}
	}
	held := map[string]bool{}
	for _, l := range open {
		held[l.Run] = true
		if w := p.runs[l.Run]; !l.Pending() && !l.Whole && (w == nil || w.state != "live" || w.until != l.Until || w.token != l.Token) {
			p.bad("P2: run %s is in flight as %+v; granted and answered was %+v", l.Run, l, w)
		}
	}
	for run, w := range p.runs {
		if w.state == "live" && !held[run] && !p.foreign[run] {
			p.bad("P2: live run %s of %s is nowhere", run, w.job)
		}
	}
}
