package schedtest

import (
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

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
