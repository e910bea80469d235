//go:build unix

package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// plant spoils a good case in one way, which the judge must call by its name.
type plant struct {
	what string
	want judge.Kind
	// spoil gets a case of its own, and which of its writes is the start of a run of a job that ticks each second; the job's next
	// one is there as well, and each has its row.
	spoil func(c *judge.Case, i, next int)
}

var plants = []plant{
	{"a run without line and record", judge.KindLost, func(c *judge.Case, i, _ int) {
		b := c.Books[c.Writes[i].Job]
		b.Rows = slices.DeleteFunc(b.Rows, func(r judge.Row) bool { return r.Run == c.Writes[i].Run })
		c.Books[b.Entry.Job] = b
		c.Writes = slices.Delete(c.Writes, i, i+1)
	}},
	{"one shard of two alone", judge.KindLost, func(c *judge.Case, i, _ int) { c.Writes[i].Shards = 2 }},
	{"a tick run again by another node", judge.KindDouble, func(c *judge.Case, i, _ int) {
		again := c.Writes[i]
		again.No, again.Node, again.Run, again.Token = len(c.Writes)+1, "ghost", "again", again.Token+1_000_000
		c.Writes = append(c.Writes, again)
	}},
	{"a start before its tick", judge.KindEarly, func(c *judge.Case, i, _ int) { c.Writes[i].At = c.Writes[i].Tick.Add(-time.Millisecond) }},
	{"a start three seconds after its tick", judge.KindLate, func(c *judge.Case, i, _ int) { c.Writes[i].At = c.Writes[i].Tick.Add(3 * time.Second) }},
	{"two tokens swapped", judge.KindToken, func(c *judge.Case, i, next int) {
		c.Writes[i].Token, c.Writes[next].Token = c.Writes[next].Token, c.Writes[i].Token
	}},
	{"the same token twice", judge.KindToken, func(c *judge.Case, i, next int) { c.Writes[next].Token = c.Writes[i].Token }},
	{"a tick between two seconds", judge.KindPhantom, func(c *judge.Case, i, _ int) { c.Writes[i].Tick = c.Writes[i].Tick.Add(time.Millisecond) }},
	{"a job that nobody defined", judge.KindPhantom, func(c *judge.Case, i, _ int) { c.Writes[i].Job = "ghost" }},
	{"two shards that do not agree on how many they are", judge.KindMixed, func(c *judge.Case, i, _ int) {
		part := c.Writes[i]
		part.No, part.Run, part.Token, part.Shard, part.Shards = len(c.Writes)+1, "part", part.Token+1_000_000, 1, 2
		c.Writes = append(c.Writes, part)
	}},
	{"a tick that ran, recorded as missed too", judge.KindContradiction, func(c *judge.Case, i, _ int) {
		at := c.Writes[i].Tick.UnixMilli()
		b := c.Books[c.Writes[i].Job]
		b.Rows = append(b.Rows, judge.Row{Job: b.Entry.Job, Prev: at, Next: at + 1000, At: at + 1000, Tick: at, Until: at, Count: 1, Ranged: true,
			Outcome: jobs.OutcomeMissed, Reason: judge.ReasonLate})
		c.Books[b.Entry.Job] = b
	}},
	{"a run recorded as abandoned, and nothing was wrong", judge.KindUntrue, func(c *judge.Case, i, _ int) { rowOf(c, i).Outcome = jobs.OutcomeAbandoned }},
	{"a second attempt after a success", judge.KindUnwanted, func(c *judge.Case, i, _ int) {
		again := *rowOf(c, i)
		again.Run, again.Attempt, again.Trigger, again.Prev, again.Next = judge.Successor(again.Run), 2, jobs.TriggerRerun.String(), 0, 0
		again.Token += 1_000_000
		b := c.Books[again.Job]
		b.Rows = append(b.Rows, again)
		c.Books[again.Job] = b
	}},
	{"a start while another run of the job goes on", judge.KindOverlap, func(c *judge.Case, _, _ int) {
		i := slices.IndexFunc(c.Writes, func(w judge.Write) bool { return w.Phase == judge.End })
		c.Writes = slices.Delete(c.Writes, i, i+1)
	}},
	{"a success without a line", judge.KindBooks, func(c *judge.Case, i, _ int) { c.Writes = slices.Delete(c.Writes, i, i+1) }},
	{"a record with another node", judge.KindBooks, func(c *judge.Case, i, _ int) { rowOf(c, i).NodeName = "ghost" }},
}

// rowOf is the row of a write's run.
func rowOf(c *judge.Case, i int) *judge.Row {
	rows := c.Books[c.Writes[i].Job].Rows
	return &rows[slices.IndexFunc(rows, func(r judge.Row) bool { return r.Run == c.Writes[i].Run })]
}

// found plants it in a copy of a good case, and says whether the judge called it by its name.
func (p plant) found(c judge.Case) bool {
	c.Writes, c.Books = slices.Clone(c.Writes), maps.Clone(c.Books)
	for name, b := range c.Books {
		b.Rows = slices.Clone(b.Rows)
		c.Books[name] = b
	}
	each := func(w judge.Write) bool { return strings.HasPrefix(w.Job, "each-") }
	i := len(c.Writes) / 3
	i += slices.IndexFunc(c.Writes[i:], each)
	next := i + 1 + slices.IndexFunc(c.Writes[i+1:], func(w judge.Write) bool { return w.Job == c.Writes[i].Job })
	p.spoil(&c, i, next)
	return slices.ContainsFunc(judge.Check(c).Findings, func(f judge.Finding) bool { return f.Kind == p.want })
}
