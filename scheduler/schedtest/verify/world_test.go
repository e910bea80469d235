package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// epoch is when the tests' clusters begin to run.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	ms       = time.Millisecond
	leaseFor = 15 * time.Second
)

func after(d time.Duration) time.Time { return epoch.Add(d) }

// pick draws a number between two bounds, both included.
type pick func(lo, hi int) int

func seeded(seed uint64) pick {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(lo, hi int) int { return lo + r.IntN(hi-lo+1) }
}

// plan is what a job of the tests' clusters does.
type plan struct {
	name     string
	schedule Schedule
	next     Schedule      // after the deployment; nil for none
	deployed time.Duration // after the epoch
	lasts    func() time.Duration
	lag      func() time.Duration // from when it can be claimed to its claim
	asked    []time.Duration
	outage   Span // nobody can claim
	dies     int  // every n-th run's node dies; 0 for none
}

// player plays one job through, the way the design says, and writes down what sink and books see.
type player struct {
	plan
	c     *Case
	job   Job
	until time.Time
	rows  []noted // in any order
	token int64
	runs  int
	hold  time.Time // until when a run holds the job
	since time.Time // when it was granted
}

// noted is a row and when Redis wrote it, which is later than the end that a run's own row names.
type noted struct {
	row ledger.Row
	at  time.Time
}

// play adds a job to a case. All of it happens before until.
func play(c *Case, p plan, until time.Time) {
	g := &player{plan: p, c: c, until: until, token: 1000}
	g.job = Job{Name: p.name, Versions: []Version{{Schedule: p.schedule, Certain: Span{epoch, until}, Possible: Span{epoch, until}}}}
	for _, at := range p.asked {
		g.job.Asked = append(g.job.Asked, after(at))
	}
	if p.next == nil {
		g.serve(p.schedule.Ticks(epoch, until), time.Time{}, until)
	} else {
		d, slack := after(p.deployed), 100*ms
		g.job.Versions = []Version{
			{p.schedule, Span{epoch, d.Add(-slack)}, Span{epoch, d.Add(slack)}},
			{p.next, Span{d.Add(slack), until}, Span{d.Add(-slack), until}},
		}
		fresh := p.next.Ticks(d.Add(1), until)
		g.serve(p.schedule.Ticks(epoch, until), d, fresh[0])
		g.serve(fresh, time.Time{}, until)
	}
	c.Jobs = append(c.Jobs, g.job)
	c.Books.Rows[p.name] = merged(g.rows)
	c.Books.Cursor[p.name] = until.Add(time.Hour)
}

// claimable is when a tick, or a request, is asked for.
func (g *player) claimable(at time.Time) time.Time {
	if s := g.outage; !at.Before(s.From) && at.Before(s.Until) {
		at = s.Until
	}
	return at.Add(g.lag())
}

// serve goes through the ticks of one schedule. What is not claimed when it is replaced is
// superseded; next is the first tick of what replaces it.
func (g *player) serve(ticks []time.Time, replaced, next time.Time) {
	now := epoch
	follows := func(i int) time.Time {
		if i < len(ticks) {
			return ticks[i]
		}
		return next
	}
	for i := 0; i < len(ticks); {
		tick := ticks[i]
		claim := latest(now, g.claimable(tick))
		if len(g.asked) > 0 {
			asked := latest(latest(now, g.claimable(after(g.asked[0]))), g.hold)
			if !asked.After(claim) && (replaced.IsZero() || asked.Before(replaced)) {
				g.run(after(g.asked[0]).Add(ms), asked, manual, time.Time{})
				g.asked = g.asked[1:]
				continue
			}
		}
		if !replaced.IsZero() && !claim.Before(replaced) {
			g.replace(ticks[i:], replaced, next)
			return
		}
		if g.hold.After(claim) {
			if g.since.After(tick) {
				now = g.hold.Add(20 * ms) // merely late: it waits
				continue
			}
			g.pass(jobs.OutcomeSkipped, "overlap", claim, ticks[i:i+1], follows(i+1), 1)
			i++
			continue
		}
		trigger := "schedule"
		if claim.Sub(tick) > 10*time.Second {
			trigger = "catch_up"
			first := i
			for i+1 < len(ticks) && !ticks[i+1].After(claim) {
				i++
			}
			if i > first {
				g.pass(jobs.OutcomeMissed, "late", claim, ticks[first:i], ticks[i], i-first)
			}
		}
		g.run(ticks[i], claim, trigger, follows(i+1))
		i++
	}
}

// replace records the ticks up to the replacement as superseded; there may be none.
func (g *player) replace(ticks []time.Time, at, next time.Time) {
	n, _ := slices.BinarySearchFunc(ticks, at.Add(1), time.Time.Compare)
	g.pass(jobs.OutcomeSuperseded, "definition replaced", at, ticks, next, n)
}

// pass records the first count of the ticks as not run.
func (g *player) pass(o jobs.Outcome, reason string, at time.Time, ticks []time.Time, next time.Time, count int) {
	row := ledger.Row{Job: g.name, Ranged: true, Prev: ticks[0].UnixMilli(), Next: next.UnixMilli(), At: at.UnixMilli(),
		Tick: ticks[0].UnixMilli(), Count: int64(count), Outcome: o, Reason: reason}
	if count > 0 {
		row.Until = ticks[count-1].UnixMilli()
	}
	g.rows = append(g.rows, noted{row, at})
}

func (g *player) run(tick, granted time.Time, trigger string, next time.Time) {
	g.runs++
	g.token += 10
	row := ledger.Row{Job: g.name, Prev: tick.UnixMilli(), Next: next.UnixMilli(), Tick: tick.UnixMilli(), Shards: 1, Attempt: 1, Tries: 1,
		Run: fmt.Sprintf("%s-%d", g.name, g.runs), Token: g.token, Node: fmt.Sprintf("id%d", g.runs%3), NodeName: fmt.Sprintf("n%d", g.runs%3),
		Trigger: trigger, Started: granted.Add(ms).UnixMilli(), Outcome: jobs.OutcomeSucceeded}
	if trigger == manual {
		row.Request, row.Prev, row.Next = row.Run, 0, 0
	}
	w := Write{At: granted.Add(2 * ms), Job: g.name, Tick: tick, Run: row.Run, Token: g.token, Node: row.NodeName, Attempt: 1, Trigger: trigger, Phase: Start}
	g.c.Writes = append(g.c.Writes, w)
	lasts := g.lasts()
	end := w.At.Add(lasts)
	g.since, g.hold = granted, end.Add(3*ms)
	if g.dies > 0 && g.runs%g.dies == 0 {
		died := w.At.Add(lasts / 2)
		g.c.Disturbed = append(g.c.Disturbed, Disturbance{Span: Span{died, died.Add(ms)}, What: "kill", Nodes: []string{row.NodeName}})
		g.hold = granted.Add(leaseFor + 300*ms)
		row.Outcome, row.Reason, row.Started, row.At = jobs.OutcomeAbandoned, "lease lapsed", granted.UnixMilli(), g.hold.UnixMilli()
	} else {
		row.At = end.UnixMilli()
		w.At, w.Phase = end, End
		g.c.Writes = append(g.c.Writes, w)
	}
	g.rows = append(g.rows, noted{row, g.hold})
}

// merged puts rows into the order of recording; those of ticks that were skipped one after another
// become one.
func merged(rows []noted) []ledger.Row {
	slices.SortStableFunc(rows, func(a, b noted) int { return a.at.Compare(b.at) })
	var out []ledger.Row
	for _, n := range rows {
		row := n.row
		if n := len(out); n > 0 && row.Ranged && row.Outcome == jobs.OutcomeSkipped && out[n-1].Ranged && out[n-1].Outcome == row.Outcome && out[n-1].Next == row.Prev {
			tail := &out[n-1]
			tail.Next, tail.At, tail.Until, tail.Count = row.Next, row.At, row.Until, tail.Count+row.Count
			continue
		}
		out = append(out, row)
	}
	return out
}

func blank() Case {
	return Case{Books: Books{Rows: map[string][]ledger.Row{}, Cursor: map[string]time.Time{}},
		Within: 2 * time.Second, Settle: 20 * time.Second, CatchUp: 10 * time.Second}
}

// finish numbers the lines in the order of their instants.
func finish(c Case, until time.Time) Case {
	slices.SortStableFunc(c.Writes, func(a, b Write) int { return a.At.Compare(b.At) })
	for i := range c.Writes {
		c.Writes[i].No = i + 1
	}
	c.Read = until.Add(time.Minute)
	return c
}

func mustEvery(d time.Duration) Schedule {
	s, err := Every(d)
	if err != nil {
		panic(err)
	}
	return s
}

// healthy are three jobs of 30 ticks each, and three runs by hand. Nothing is wrong.
func healthy(t testing.TB) Case {
	t.Helper()
	c := blank()
	until := after(5 * time.Minute)
	short := func() time.Duration { return 50 * ms }
	soon := func() time.Duration { return 18 * ms }
	play(&c, plan{name: "ten", schedule: mustEvery(10 * time.Second), lasts: short, lag: soon}, until)
	play(&c, plan{name: "cron", schedule: mustCron(t, "5/10 * * * * *", "Europe/Berlin"), lag: soon,
		lasts: func() time.Duration { return 4 * time.Second }}, until)
	play(&c, plan{name: "asked", schedule: mustEvery(10 * time.Second), lasts: short, lag: soon,
		asked: []time.Duration{7 * time.Second, 107 * time.Second, 207 * time.Second}}, until)
	return finish(c, until)
}

// eventful is a cluster with all that can rightly happen: long runs and skipped ticks, an outage, nodes
// that die, a deployment, requests.
func eventful(p pick) Case {
	c := blank()
	span := time.Duration(p(30, 150)) * time.Second
	until := after(span)
	seconds := func(lo, hi int) time.Duration { return time.Duration(p(lo*1000, hi*1000)) * ms }
	var outage Span
	if p(0, 1) == 1 {
		from := after(seconds(0, 20))
		outage = Span{from, from.Add(seconds(1, 30))}
		c.Disturbed = append(c.Disturbed, Disturbance{Span: outage, What: "Redis is away"})
	}
	for i := range p(1, 4) {
		long := p(0, 3) == 0
		g := plan{name: fmt.Sprintf("job-%d", i), outage: outage,
			schedule: mustEvery(time.Duration(p(5, 120)) * 100 * ms),
			lag:      func() time.Duration { return time.Duration(p(1, 600)) * ms },
			lasts: func() time.Duration {
				if long {
					return seconds(0, 20)
				}
				return time.Duration(p(1, 300)) * ms
			}}
		if p(0, 3) == 0 {
			g.dies = p(2, 9)
		}
		for at := seconds(0, 60); p(0, 2) == 0 && at < span/2; at += seconds(1, 30) {
			g.asked = append(g.asked, at)
		}
		if p(0, 2) == 0 {
			g.next, g.deployed = mustEvery(time.Duration(p(5, 50))*100*ms), time.Duration(p(1, int(span/ms)-6000))*ms
		}
		play(&c, g, until)
	}
	return finish(c, until)
}
