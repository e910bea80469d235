package ledger

import (
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

func (w *world) settle(o op) op {
	o.kind = "settle"
	here := w.part()
	own := func(l Lease) bool { return here(l.Job) }
	if open := keepIf(w.view.leased, own); len(open) > 0 {
		for _, l := range some(w, open, 5) {
			o.reports = append(o.reports, w.report(l))
		}
	}
	if old := keepIf(w.reports, func(r Report) bool { return here(r.Job) }); len(old) > 0 && w.chance(40) {
		again := pick(w, old)
		if w.chance(30) {
			again.Outcome = pick(w, ends)
		}
		o.reports = append(o.reports, again)
	}
	if past := keepIf(w.ended, own); len(past) > 0 && w.chance(25) {
		o.reports = append(o.reports, w.report(pick(w, past)))
	}
	if w.chance(3) && len(o.reports) > 0 {
		o.reports = append(o.reports, w.report(Lease{Job: o.reports[0].Job, Run: w.id("nobody")}))
	}
	w.rng.Shuffle(len(o.reports), func(i, j int) { o.reports[i], o.reports[j] = o.reports[j], o.reports[i] })
	for i := range o.reports {
		if w.repeated[Successor(o.reports[i].Run)] { // its lease had lapsed before the failover
			o.reports[i].Outcome, o.reports[i].Rerun = jobs.OutcomeLost, true
		}
	}
	for _, r := range o.reports {
		w.reports = remember(w.reports, r, 60)
	}
	return o
}

func (w *world) report(l Lease) Report {
	r := Report{Job: l.Job, Run: l.Run, Outcome: pick(w, ends), Started: l.Granted, Ended: max(0, w.ms()+w.rng.Int64N(200)-100),
		Reason: pick(w, []string{"", "by | hand", "two\nlines"}), Tries: w.rng.IntN(4),
		Error:  pick(w, []string{"", "", "exit 1", "a|b|c", "1|R|x\n|\x00\xff%d", "grüße"}),
		Output: pick(w, [][]byte{nil, nil, []byte("done\n"), []byte("1|R|\x00\xff%d")})}
	if r.Outcome == jobs.OutcomeLost || r.Outcome == jobs.OutcomeCancelled && w.chance(50) || w.chance(3) {
		r.Rerun = true
	}
	return r
}

func (w *world) renew(o op) op {
	o.kind = "renew"
	for _, l := range some(w, append(slices.Clone(w.view.leased), w.ended...), 6) {
		o.renewals = append(o.renewals, locking.Renewal{Name: l.Job, Owner: l.Run, Token: l.Token, TTL: millisOf(max(l.TTL, 1000))})
	}
	slices.SortFunc(o.renewals, func(a, b locking.Renewal) int { return strings.Compare(a.Owner, b.Owner) })
	o.renewals = slices.CompactFunc(o.renewals, func(a, b locking.Renewal) bool { return a.Owner == b.Owner })
	return o
}

func (w *world) reap(o op) op {
	o.kind = "reap"
	here := w.part()
	list := w.view.leased
	if w.chance(35) {
		list = w.seen
	}
	list = keepIf(list, func(l Lease) bool { return here(l.Job) && (l.Until <= w.ms() || w.chance(25)) })
	if len(list) == 0 {
		return o
	}
	for _, l := range some(w, list, 4) {
		if w.chance(15) {
			l.Beat += 1 - 2*w.rng.Int64N(2)
		}
		o.seen = append(o.seen, l)
	}
	for _, l := range some(w, w.view.leased, 3) {
		w.seen = remember(w.seen, l, 20) // to be reaped later, by what was seen now
	}
	return o
}

func (w *world) unclaim(o op) op {
	o.kind = "unclaim"
	here := w.part()
	for _, l := range some(w, keepIf(w.view.leased, func(l Lease) bool { return here(l.Job) }), 3) {
		o.returns = append(o.returns, Return{Job: l.Job, Run: l.Run})
	}
	if old := keepIf(w.returns, func(r Return) bool { return here(r.Job) }); len(old) > 0 && w.chance(50) {
		o.returns = append(o.returns, pick(w, old))
	}
	// After a failover a run may be there whose next attempt is as well: its node is no more, and hands nothing back.
	o.returns = keepIf(o.returns, func(r Return) bool { return !w.repeated[Successor(r.Run)] && !w.repeated[r.Run] })
	for _, r := range o.returns {
		w.returns = remember(w.returns, r, 20)
		w.burnt[r.Run] = true
	}
	return o
}
