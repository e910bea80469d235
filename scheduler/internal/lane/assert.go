package lane

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// assertMax is how many runs a call tells of: to find a place for one may take a look at all that waits in its partition.
const assertMax = 16

// recalled is a run that this node was granted, and how it ended if it has.
type recalled struct {
	g   work.Grant
	end *ledger.Report
}

// outcomes of telling, by how many runs they came to.
type reported struct{ restored, left, lost int }

// assert tells a server of all runs of this node in partitions that it has newly, those later alone that are left to be told again, and
// says whether all are in place. With last, what others would have to account for first is not waited for any longer.
func (f *failover) assert(ctx context.Context, server string, last bool) bool {
	if err := f.recall(ctx, server); err != nil {
		if ctx.Err() == nil && !errors.Is(err, ledger.ErrServer) {
			f.l.fail("recall", err)
		}
		return false
	}
	rounds := 1
	if last {
		rounds = 3 // a cursor may move while the gap before it is told
	}
	var sum reported
	for range rounds {
		left, got, err := f.tell(ctx, server, last)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, ledger.ErrServer) { // another one again: the next look shows it
				f.l.fail("reassert", err)
			}
			return false // nobody is there who could be told, or trusted
		}
		f.mu.Lock()
		f.each(server, func(e *epoch) { e.told = server })
		f.left, f.leftOf = left, server
		f.mu.Unlock()
		sum.restored, sum.lost, sum.left = sum.restored+got.restored, sum.lost+got.lost, len(left)
		if sum.left == 0 {
			break
		}
	}
	f.say(sum, last)
	if sum.left > 0 && !last {
		return false
	}
	f.mu.Lock()
	f.each(server, func(e *epoch) { e.placed = server })
	f.left = nil
	f.mu.Unlock()
	return true
}

// each does something to all partitions that have noticed a server. The caller has the lock.
func (f *failover) each(server string, do func(*epoch)) {
	for _, e := range f.epochs {
		if e.noticed == server {
			do(e)
		}
	}
}

// say says what came of telling.
func (f *failover) say(sum reported, last bool) {
	if sum.restored > 0 {
		f.l.Log.Warn("Redis had lost runs of this node; they are restored", "runs", sum.restored)
	}
	if sum.lost > 0 {
		f.l.Log.Warn("Redis has lost runs of this node that are going, and their ticks are accounted for in another way: they will be ended", "runs", sum.lost)
	}
	if sum.left > 0 && last {
		f.l.Log.Warn("Redis has lost runs of this node, and they could not be restored; those that are going will be ended", "runs", sum.left)
	}
	if sum.left == 0 {
		f.l.Health.OK("reassert")
	}
}

// tell tells once, of all runs or of those that are left of this server, and returns which are to be told again.
func (f *failover) tell(ctx context.Context, server string, last bool) (left map[string]int64, got reported, err error) {
	l := f.l.Ledger.At(server)
	left = make(map[string]int64)
	for _, batch := range f.batches(server) {
		answers, err := f.tellOf(ctx, l, server, batch, last)
		if err != nil {
			return nil, got, err
		}
		var ends []ledger.Report
		for i, a := range answers {
			switch c := batch[i]; {
			case a.Word == ledger.Known || a.Word == ledger.Restored:
				if a.Word == ledger.Restored {
					got.restored++
				}
				if c.end != nil {
					ends = append(ends, *c.end)
				}
			case restored(a.Word):
				left[c.g.Lease.Run] = a.Cursor
			case a.Word != ledger.Ended && c.end == nil:
				got.lost++
				f.l.Log.Debug("run lost", "job", c.g.Lease.Job, "tick", time.UnixMilli(c.g.Lease.Tick).UTC(), "run", c.g.Lease.Run, "answer", string(a.Word))
			}
		}
		if err := settleAgain(ctx, l, ends); err != nil {
			return nil, got, err
		}
	}
	return left, got, nil
}

// tellOf tells of one batch, of one partition, whose own trouble keeps no other waiting for ever: there are no words then.
func (f *failover) tellOf(ctx context.Context, l *ledger.Ledger, server string, batch []recalled, last bool) ([]ledger.Asserted, error) {
	list := make([]ledger.Assertion, len(batch))
	for i, c := range batch {
		list[i] = f.assertion(c, last)
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	answers, err := l.Reassert(call, f.l.Clock.last().UnixMilli(), server, list)
	switch {
	case err == nil:
		return answers, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	f.l.fail("reassert", err)
	return make([]ledger.Asserted, len(batch)), nil
}

// retold says whether a run with this answer is to be told again: its tick lies behind others, or its job is being
// registered again, or there was no answer.
func restored(w ledger.Status) bool {
	return w == ledger.Behind || w == ledger.OtherDef || w == ledger.NoSuchJob || w == ""
}

// settleAgain records ends that were recorded before and lost.
func settleAgain(ctx context.Context, l *ledger.Ledger, ends []ledger.Report) error {
	if len(ends) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	_, err := l.Settle(call, ends) // lost and unknown: somebody else has decided meanwhile
	return err
}

// batches are the runs that this node has, and had lately, in partitions that the server has newly, as calls take them: in the order in
// which they were granted. Or those of them that are left of this server.
func (f *failover) batches(server string) [][]recalled {
	f.mu.Lock()
	left := f.leftOf == server
	all, known := []recalled(nil), make(map[string]bool)
	//guard:ends-told P2 a Redis that has lost the end of a run is told of it
	for _, e := range f.l.lanes.memory.recent() {
		known[e.Report.Run] = true
		all = append(all, recalled{e.Grant, &e.Report})
	}
	//guard:runs-told P1 a Redis that has lost the grant of a run is told of it
	for _, g := range f.l.Runs.Grants() {
		if !known[g.Lease.Run] {
			all = append(all, recalled{g: g})
		}
	}
	all = slices.DeleteFunc(all, func(c recalled) bool {
		_, is := f.left[c.g.Lease.Run]
		e := f.epochs[c.g.Job.Part]
		return left && !is || e == nil || e.noticed != server || e.placed == server
	})
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b recalled) int {
		return cmp.Or(a.g.Job.Part-b.g.Job.Part, cmp.Compare(a.g.Lease.Token, b.g.Lease.Token), a.g.Job.Index-b.g.Job.Index)
	})
	var batches [][]recalled
	for len(all) > 0 {
		n := 1
		for n < len(all) && n < assertMax && all[n].g.Job.Part == all[0].g.Job.Part {
			n++
		}
		batches, all = append(batches, all[:n]), all[n:]
	}
	return batches
}

// assertion is what the ledger is told of a run.
func (f *failover) assertion(c recalled, last bool) ledger.Assertion {
	j, l := c.g.Job, c.g.Lease
	a := ledger.Assertion{Digest: j.Digest, Lease: l}
	if c.end != nil {
		a.Ended = c.end.Ended
	}
	if l.Of != "" && l.Shards == j.Shards {
		a.Reopen, a.Params = true, j.Params
	}
	if l.Prev == 0 && j.Schedule != nil { // a shard, or a later attempt: its tick's step may be lost too
		a.Next = work.Millis(j.Schedule.Next(time.UnixMilli(l.Tick)))
	}
	f.mu.Lock()
	cursor := f.left[l.Run]
	f.mu.Unlock()
	if last && cursor != 0 && j.Schedule != nil {
		count, until := j.Schedule.Count(time.UnixMilli(cursor), time.UnixMilli(l.Tick))
		a.Gap = &ledger.SkippedRange{First: cursor, Last: cmp.Or(work.Millis(until), cursor), Count: int64(count)}
	}
	return a
}
