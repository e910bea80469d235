package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// recalled is a run that this node was granted, and how it ended if it has.
type recalled struct {
	g   grant
	end *ledger.Report
}

// assert tells a server of all runs of this node, and says whether it has them now. With last, what others would have
// to account for first is not waited for any longer.
func (f *failover) assert(ctx context.Context, server string, last bool) bool {
	rounds, left := 1, 0
	if last {
		rounds = 3 // a cursor may move while the gap before it is told
	}
	for range rounds {
		var err error
		if left, err = f.tell(ctx, server, last); err != nil {
			if ctx.Err() == nil && !errors.Is(err, ledger.ErrServer) { // another one again: the next look shows it
				f.n.health.fail("reassert", err)
			}
			return false // nobody is there who could be told, or trusted
		}
		f.mu.Lock()
		f.told = server
		f.mu.Unlock()
		if left == 0 {
			break
		}
	}
	switch {
	case left == 0:
		f.n.health.ok("reassert")
	case !last:
		return false
	default:
		f.n.log.Warn("Redis has lost runs of this node, and they could not be restored; those that are going will be ended", "runs", left)
	}
	f.mu.Lock()
	f.known = server
	f.mu.Unlock()
	return true
}

// tell tells once, and returns how many runs are to be told of again.
func (f *failover) tell(ctx context.Context, server string, last bool) (left int, err error) {
	l, restored := f.n.ledger.At(server), 0
	for _, batch := range f.batches() {
		list := make([]ledger.Assertion, len(batch))
		for i, c := range batch {
			list[i] = f.assertion(c, last)
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		answers, err := l.Reassert(call, f.n.clock.now().UnixMilli(), server, list)
		cancel()
		if errors.Is(err, locking.ErrUnreachable) || errors.Is(err, ledger.ErrServer) || errors.Is(err, ledger.ErrClock) {
			return 0, err
		}
		if err != nil { // that of this partition: it keeps no other waiting for ever
			f.n.health.fail("reassert", err)
			left += len(batch)
			continue
		}
		var ends []ledger.Report
		for i, a := range answers {
			again := f.answered(batch[i], a)
			if again {
				left++
			}
			if a.Word == ledger.Restored {
				restored++
			}
			if batch[i].end != nil && (a.Word == ledger.Known || a.Word == ledger.Restored) {
				ends = append(ends, *batch[i].end)
			}
		}
		if err := settleAgain(ctx, l, ends); err != nil {
			return 0, err
		}
	}
	if restored > 0 {
		f.n.log.Warn("Redis had lost runs of this node; they are restored", "runs", restored)
	}
	return left, nil
}

// settleAgain records ends that were recorded before and lost.
func settleAgain(ctx context.Context, l *ledger.Ledger, ends []ledger.Report) error {
	if len(ends) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := l.Settle(call, ends) // lost and unknown: somebody else has decided meanwhile
	return err
}

// batches are the runs that this node has, and had lately, as calls take them: in the order in which they were granted.
func (f *failover) batches() [][]recalled {
	f.mu.Lock()
	all, known := make([]recalled, 0, len(f.ended)), make(map[string]bool)
	for i := range f.ended {
		e := &f.ended[i]
		known[e.report.Run] = true
		report := e.report
		all = append(all, recalled{e.grant, &report})
	}
	f.mu.Unlock()
	for _, g := range f.n.runner.grants() {
		if !known[g.lease.Run] {
			all = append(all, recalled{g: g})
		}
	}
	slices.SortFunc(all, func(a, b recalled) int {
		return cmp.Or(a.g.job.part-b.g.job.part, cmp.Compare(a.g.lease.Token, b.g.lease.Token), a.g.job.index-b.g.job.index)
	})
	var batches [][]recalled
	for len(all) > 0 {
		n := 1
		for n < len(all) && n < ledger.BatchMax && all[n].g.job.part == all[0].g.job.part {
			n++
		}
		batches, all = append(batches, all[:n]), all[n:]
	}
	return batches
}

// assertion is what the ledger is told of a run.
func (f *failover) assertion(c recalled, last bool) ledger.Assertion {
	j, l := c.g.job, c.g.lease
	a := ledger.Assertion{Digest: j.digest, Lease: l}
	if l.Of != "" && l.Shards == j.Shards {
		a.Reopen, a.Params = true, j.Params
	}
	if l.Prev == 0 && j.schedule != nil { // a shard, or a later attempt: its tick's step may be lost too
		a.Next = millis(j.schedule.Next(time.UnixMilli(l.Tick)))
	}
	if cursor := f.behind[l.Run]; last && cursor != 0 && j.schedule != nil {
		count, until := j.schedule.Count(time.UnixMilli(cursor), time.UnixMilli(l.Tick))
		a.Gap = &ledger.Pass{First: cursor, Last: cmp.Or(millis(until), cursor), Count: int64(count)}
	}
	return a
}

// answered takes up what the ledger says of a run, and whether to tell it again.
func (f *failover) answered(c recalled, a ledger.Asserted) (again bool) {
	l := c.g.lease
	switch a.Word {
	case ledger.Behind:
		if f.behind == nil {
			f.behind = make(map[string]int64)
		}
		f.behind[l.Run] = a.Cursor
		return true
	case ledger.OtherDef, ledger.NoSuchJob:
		return true // it is being registered again
	case ledger.Lost, ledger.Strange:
		f.n.log.Warn("Redis has lost a run of this node, and its tick is accounted for in another way", "job", l.Job,
			"tick", time.UnixMilli(l.Tick).UTC(), "run", l.Run, "ended", c.end != nil, "answer", string(a.Word))
	default: // it has it
	}
	return false
}
