package schedtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// tickEnd is what became of a tick of a job that another one follows.
type tickEnd struct {
	ended, succeeded bool
	attempts         int
	at               int64 // when it ended first, by Redis' clock, ms
}

// answered: each tick of a job that ended, after another job had asked to be told, has one answer there: a run, or
// a row that says why not, or word of it is still on its way.
func (t *tale) answered() {
	for _, name := range t.names {
		upstream := t.defs(name)[0].After
		if upstream == "" || t.trimmed(name) || t.trimmed(upstream) {
			continue
		}
		i := slices.IndexFunc(t.follows, func(f followed) bool { return f.job == name && f.upstream == upstream })
		if i < 0 {
			continue
		}
		since := t.read - t.now.Sub(t.follows[i].at).Milliseconds()
		for tick, end := range t.tickEnds(upstream) {
			t.answeredOnce(name, upstream, tick, end, since)
		}
	}
}

// led: a job that follows another runs for a tick only when that one has succeeded at it before, and not by hand.
func (t *tale) led() {
	for _, g := range t.grants {
		upstream := t.defs(g.job)[0].After
		if upstream == "" || g.request != "" {
			continue
		}
		if t.trimmed(upstream) {
			continue // what was closed is seen in rows
		}
		if !slices.ContainsFunc(t.steps(), func(o given) bool {
			e := t.endOf(o.run)
			return o.job == upstream && o.shards < 2 && o.tick == g.tick && o.request == "" && e != nil && e.outcome == "succeeded" && (e.at.Before(g.at) || t.stepped && t.openOf(o.run) != nil)
		}) {
			t.blame("%s: granted to %s, and %s has not succeeded at that tick", g.lineage(), g.run, upstream)
		}
	}
}

// tickEnds are the ticks of a job that ended, or came to an end and are tried again.
func (t *tale) tickEnds(name string) map[int64]*tickEnd {
	all := make(map[int64]*tickEnd)
	get := func(tick, at int64) *tickEnd {
		if all[tick] == nil {
			all[tick] = &tickEnd{ended: true, at: at}
		}
		e := all[tick]
		e.at = min(e.at, at)
		e.attempts++
		return e
	}
	for _, r := range t.rows[name] {
		switch {
		case r.Ranged && r.Count > 0:
			for tick := range t.ticksOf(name, r) {
				get(tick, r.At)
			}
		case !r.Ranged && r.Request == "" && (r.Whole || r.Shards < 2): // shards, and their reruns, tell nobody
			at := r.At
			if e := t.endOf(r.Run); e != nil {
				at = e.ms
			}
			e := get(r.Tick, at)
			e.succeeded = e.succeeded || r.Outcome == jobs.OutcomeSucceeded
		}
	}
	for _, l := range t.open {
		if l.Job == name && l.Request == "" && (l.Whole || l.Shards < 2) {
			get(l.Tick, never).ended = false
		}
	}
	return all
}

// ticksOf are the ticks of a range: of the job's own schedule, or of the one that it follows in the end.
func (t *tale) ticksOf(name string, r ledger.Row) map[int64]bool {
	all := make(map[int64]bool)
	for t.defs(name)[0].After != "" {
		name = t.defs(name)[0].After
	}
	for _, j := range t.defs(name) {
		s, err := j.ParsedSchedule()
		if err != nil {
			continue
		}
		for at := s.Next(time.UnixMilli(r.Tick - 1)); !at.IsZero() && at.UnixMilli() <= r.Until; at = s.Next(at) {
			all[at.UnixMilli()] = true
		}
	}
	if len(all) != int(r.Count) { // of two schedules
		return map[int64]bool{r.Tick: true, r.Until: true}
	}
	return all
}

func (t *tale) answeredOnce(name, upstream string, tick int64, end *tickEnd, since int64) {
	ran, passed := false, 0
	for _, r := range t.rows[name] {
		switch {
		case r.Ranged && r.Tick <= tick && tick <= r.Until:
			passed++
		case !r.Ranged && r.Tick == tick && r.Request == "":
			ran = true
		}
	}
	for _, l := range t.open {
		ran = ran || l.Job == name && l.Tick == tick && l.Request == ""
	}
	n := passed
	if ran {
		n++
	}
	waits := slices.ContainsFunc(t.events, func(e ledger.Event) bool {
		return e.Upstream == upstream && e.Tick <= tick && tick <= e.Until
	})
	once := end.attempts == 1 && t.rewound[upstream] == 0
	switch {
	case n == 0 && end.ended && end.at > since && !waits:
		t.blame("%s: tick %d of %s ended at %d, and there is no answer", name, tick, upstream, end.at)
	case n > 1 && once:
		t.blame("%s: tick %d of %s is answered %d times", name, tick, upstream, n)
	case ran && !end.succeeded && once && end.ended && t.grantOfTick(name, tick):
		t.blame("%s: it ran for tick %d, which did not succeed for %s", name, tick, upstream)
	}
}

func (t *tale) grantOfTick(name string, tick int64) bool {
	return slices.ContainsFunc(t.grants, func(g given) bool { return g.job == name && g.tick == tick && g.request == "" })
}

// idle looks at a cluster that was mended long ago: nothing that may start waits.
func (t *tale) idle(c *cluster) {
	err := c.beside(func(l *ledger.Ledger, _ *scheduler.Inspector) error {
		now := c.redisTime().UnixMilli()
		all, err := l.Jobs(context.Background())
		if err != nil {
			return err
		}
		open, err := l.Open(context.Background(), t.plan.jobNames()...)
		if err != nil {
			return err
		}
		for _, s := range all {
			t.idleJob(s, open, now, c.began.Add(t.plan.Heal))
		}
		return nil
	})
	if err != nil {
		t.blame("the cluster was mended, and its books cannot be read: %v", err)
	}
}

// lazy is how long something may wait in a cluster with which nothing is wrong, ms.
const lazy = 3000

func (t *tale) idleJob(s ledger.Stored, open []ledger.Lease, now int64, healed time.Time) {
	busy := slices.ContainsFunc(t.ends, func(e ending) bool { return e.job == s.Job && now-e.ms < lazy })
	if busy || t.plan.Config.MaxRunning > 0 { // it was free only now, or waits for a slot
		return
	}
	going, oldest := false, never
	for _, l := range open {
		if l.Job == s.Job && !l.Pending() && !l.Whole {
			going = true
		}
		if l.Job == s.Job && l.Pending() {
			oldest = min(oldest, l.Granted)
		}
	}
	if s.Open == "" && s.Cursor != 0 && now-s.Cursor > lazy && len(t.defs(s.Job)) > 0 && t.defs(s.Job)[0].After == "" {
		t.blame("%s: nobody looks at its cursor, which stands at %d, and it is %d", s.Job, s.Cursor, now)
	}
	if !going && now-oldest > lazy {
		t.blame("%s: a run has waited since %d, it is %d, and nothing is going (%s holds it)", s.Job, oldest, now, cmp.Or(s.Open, "nobody"))
	}
	ran := going || slices.ContainsFunc(t.grants, func(g given) bool { return g.job == s.Job && g.at.After(healed) })
	if !ran && t.defs(s.Job)[0].After == "" {
		t.blame("%s: nothing has run since everything was mended", s.Job)
	}
}
