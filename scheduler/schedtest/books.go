package schedtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

// evidence has the ledger's records.
type evidence struct {
	books  map[string]query.JobSnapshot
	events []ledger.Event
}

// of are the books of some jobs.
func (e evidence) of(known []audit.Job) map[string]query.JobSnapshot {
	some := make(map[string]query.JobSnapshot, len(known))
	for _, j := range known {
		some[j.Name] = e.books[j.Name]
	}
	return some
}

// books reads the ledger's records. An unreadable record is a finding against the ledger.
func (c *cluster) books(ctx context.Context) (evidence, error) {
	e := evidence{books: make(map[string]query.JobSnapshot)}
	client := c.server.Client()
	defer client.Close()
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: c.plan.Config.Namespace})
	if errors.Is(err, ledger.ErrNoNamespace) {
		return e, nil // Redis was emptied, and no node has written since
	}
	if err != nil {
		return e, err
	}
	unread, err := query.EachJob(ctx, l, "", func(b query.JobSnapshot) { e.books[b.Entry.Job] = b })
	if err != nil {
		return e, err
	}
	for _, u := range unread.UnknownFormat {
		c.blame(audit.KindBooks, u.Job, "%s: %s", u.Key, u.What)
	}
	found, err := query.NewScanner(l).Scan(ctx, c.redisTime().UnixMilli(), 0)
	e.events = found.Events
	return e, err
}

// keeps reports whether a key may be there when all nodes have left in peace: a job's permanent
// records, the control record, sets of definitions, which the next beat drops, and runs that were
// handed back at the end. The audit checks that no pending run is old. Records beside the rows,
// pauses, remembered ids and follower lists stay as well; a request to cancel a run does not.
func keeps(key string) bool {
	for _, end := range []string{"}:control", "}:jobs", "}:defs", "}:due", "}:sets", "}:sets:seen", "}:pending", "}:waiting", "}:kept", "}:pauses", "}:unique", "}:followers", "}:chunks", "}:announced", "}:gate", "}:incarnation", "}:anew", "}:recent", "}:catalog", "}:catalogat", "}:catalogdropped", "}:handlers"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return strings.Contains(key, "}:history:")
}

// leftovers checks that nothing is left after all nodes have stopped in peace. The bubble itself
// checks goroutines: it does not end before they have.
func (c *cluster) leftovers() {
	mini := c.server.Mini()
	for _, key := range mini.Keys() {
		switch partition, kind, _ := strings.Cut(key, "}:"); {
		case keeps(key):
		case kind == "outbox":
			events, _ := mini.SortedSet(key)
			for event, at := range events {
				if c.ended.Sub(time.UnixMilli(int64(at))) > lastEvents {
					c.blame(Leftover, "", "the event %s", event)
				}
			}
		case kind == "cancels":
			wishes, _ := mini.HKeys(key)
			for _, id := range wishes { // an open tick may have a cancel order for its pending shards' claimers
				if mini.HGet(partition+"}:waiting", id) == "" {
					c.blame(Leftover, "", "the wish to end %s", id)
				}
			}
		case kind == "leases":
			held, _ := mini.SortedSet(key)
			for run, until := range held {
				if !c.beyond(until) {
					c.blame(Leftover, "", "the lease of run %s", run)
				}
			}
		case kind == "joins":
			fields, _ := mini.HKeys(key)
			for _, field := range fields {
				if parts := strings.Split(field, "|"); len(parts) > 1 && !slices.Contains(strings.Split(mini.HGet(key, parts[0]), ","), parts[1]) {
					c.blame(Leftover, parts[0], "%s of a join that it does not know", field)
				}
			}
		case kind == "backfills", kind == "audit": // one may be under way; its end is noted
		case kind == "backfilled":
			c.backfillsCount(key)
		case kind == "runs":
			held, _ := mini.SortedSet(partition + "}:leases") // none: no key
			runs, _ := mini.HKeys(key)
			for _, run := range runs {
				if until, leased := held[run]; !leased || !c.beyond(until) {
					c.blame(Leftover, "", "run %s", run)
				}
			}
		default:
			c.blame(Leftover, "", "key %s", key)
		}
	}
	c.keptFor()
	if n := c.conns.Load(); n != 0 {
		c.blame(Leftover, "", "%d connections are open", n)
	}
	for id, call := range c.calls {
		c.blame(Leftover, call.job, "run %s on %s has not ended", id, call.process.name)
	}
}

// backfillsCount checks that a finished backfill has counted each of its ticks once. After a deploy
// the job may have other ticks.
func (c *cluster) backfillsCount(key string) {
	if len(c.plan.Versions) > 0 {
		return
	}
	_ = c.beside(func(l *ledger.Ledger, _ *ops.Client) error {
		all, _, err := backfill.List(context.Background(), l, "")
		for _, b := range all {
			n := int64(0)
			for _, more := range b.Counts {
				n += more
			}
			if b.State == ledger.BackfillDone && n != b.Total {
				c.blame(Leftover, b.Job, "%s: backfill %s is done, and has counted %d of %d ticks", key, b.ID, n, b.Total)
			}
		}
		return err
	})
}

// keptFor checks that outputs, payloads and checkpoints which are kept belong to a row.
func (c *cluster) keptFor() {
	e, err := c.books(context.Background())
	if err != nil {
		c.blame(Harness, "", "the books cannot be read: %v", err)
		return
	}
	rows := make(map[string]bool)
	for _, b := range e.books {
		for _, r := range b.Rows {
			rows[r.Run] = true
		}
	}
	mini := c.server.Mini()
	for _, key := range mini.Keys() {
		if !strings.HasSuffix(key, "}:kept") {
			continue
		}
		fields, _ := mini.HKeys(key)
		for _, field := range fields {
			if !rows[strings.TrimPrefix(strings.TrimPrefix(field, "p:"), "s:")] {
				c.blame(Leftover, "", "%s: %s is kept, and there is no such row", key, field)
			}
		}
	}
}

// lastEvents is how long before the end an upstream's end may be undelivered.
const lastEvents = 2 * time.Second

// beyond reports whether a lease ends later than any lease that can be granted now: a node that has
// died got the lease while Redis' clock was ahead, and it lapses when the clock comes there again.
func (c *cluster) beyond(until float64) bool {
	return time.UnixMilli(int64(until)).After(c.redisTime().Add(c.settle))
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
