package schedtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Counters count the events of a simulation: a plan in which nothing happens shows nothing.
type Counters map[string]int

// Add adds the counts of another simulation.
func (c Counters) Add(other Counters) {
	for what, n := range other {
		c[what] += n
	}
}

// never returns which of some counters have stayed at zero.
func (c Counters) never(shows []string) []string {
	return slices.DeleteFunc(slices.Clone(shows), func(what string) bool { return c[what] > 0 })
}

// String lists the counts by name, a line each.
func (c Counters) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%8d  %s\n", c[what], what)
	}
	return b.String()
}

// opReassert is the call by which a node reports records that a new server may lack.
const opReassert = "reassert"

// refused reports whether a script did nothing, because the caller was mistaken about Redis.
func refused(words []string) bool {
	return len(words) == 2 && (words[0] == "clock" || words[0] == "server")
}

// reasserted counts the reports that a server gets after a loss.
func (c *cluster) reasserted(words []string) {
	for i := 0; i < len(words) && !refused(words); i += 2 {
		c.seen["asserted: "+words[i]]++
	}
}

// shardOf reads a run's open tick and the number of its shard from its record.
func shardOf(record string) (of string, shard, shards int) {
	f := strings.Split(record, "|")
	if len(f) <= recordOf {
		return "", 0, 1
	}
	shard, _ = strconv.Atoi(f[recordShard])
	shards, _ = strconv.Atoi(f[recordShards])
	return f[recordOf], shard, shards
}

// requestOf reads which request by hand a run goes back to, off its record; "" for none.
func requestOf(record string) string {
	f := strings.Split(record, "|")
	if len(f) <= recordRequest {
		return ""
	}
	return f[recordRequest]
}

// opens notes when a tick was opened first.
func (c *cluster) opens(tick string) {
	if c.opened[tick].IsZero() {
		c.opened[tick] = time.Now()
		c.seen["tick of shards"]++
	}
}

// parted counts events of a shard of an open tick: its preferred nodes did not claim it, and it was
// opened by a definition with other shards.
func (c *cluster) parted(p *process, run *jobs.Run) {
	r := c.runs[run.ID()]
	if r == nil || r.whole == "" {
		return
	}
	if at := c.opened[r.whole]; !at.IsZero() && r.at.Sub(at) > c.plan.Config.Grace {
		c.seen["shard taken over"]++
	}
	if j, known := c.defined(run.Job(), p.version); known && j.Shards != run.Shards() {
		c.seen["shards changed while open"]++
	}
}

// countRecords counts outcomes with their reasons, triggers, attempts, and ticks with both
// succeeded and unsuccessful shards.
func (c *cluster) countRecords(books map[string]query.JobSnapshot) {
	for _, b := range books {
		good := make(map[string]bool)
		for _, r := range b.Rows {
			good[r.TickID] = good[r.TickID] || r.Outcome == jobs.OutcomeSucceeded
			switch {
			case r.IsTick:
				if r.Outcome != jobs.OutcomeSucceeded && good[r.Run] {
					c.seen["partial failure"]++
				}
				continue
			case !r.Ranged && r.Attempt > 1:
				c.seen["attempt above 1"]++
			}
			if r.Tries > 1 {
				c.seen["try above 1"]++
			}
			what := r.Outcome.String()
			if r.Reason != "" {
				what += " (" + r.Reason + ")"
			}
			c.seen["recorded: "+what]++
		}
	}
}
