package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
)

// The words of Recall, besides Behind.
const (
	Before Status = "before" // the job was created and has been claimed since
	After  Status = "after"  // a restored run accounts for the tick
)

// RecallMax is the most jobs of one call of Recall.
const RecallMax = 500

// KnownCursor is a job's cursor from before a failover.
type KnownCursor struct {
	Job, Digest string
	Cursor      int64 // ms
	// Opened is the cursor after a tick that nodes have opened in shards, 0 for none. A job that
	// Redis has lost begins there.
	Opened int64
	// Confirmed: all ticks before Cursor are accounted for, because a node read the job's cursor
	// there. Otherwise only a job that Redis has lost begins at Cursor.
	Confirmed bool
	// Sharded: nodes are granted shards of the job's ticks, so no node's cursor is better than
	// another's.
	Sharded bool
	// Gap are ticks to be recorded as missed for ReasonFailover, by First, Last and Count.
	Gap *SkippedRange
}

// Recalled is the answer to a KnownCursor that is to be reported again with a Gap.
type Recalled struct {
	At int // its index
	// Word is Before: the gap ends at Cursor. Behind: the job stands at Cursor, where the gap
	// begins. After: the first tick after Cursor is to be reported.
	Word   Status
	Cursor int64 // ms
}

// Recall reports the cursors of jobs of one partition, at most RecallMax, in the epoch that At
// names, after a failover. A job that Redis has lost begins at the latest cursor that nodes report.
// Recall may be repeated. now is the caller's idea of Redis' time, ms. It returns ErrClock, or
// ErrServer in another epoch.
func (l *Ledger) Recall(ctx context.Context, now int64, batch []KnownCursor) ([]Recalled, error) {
	gaps := 0
	if slices.ContainsFunc(batch, func(r KnownCursor) bool { return r.Gap != nil }) {
		gaps = len(batch)
	}
	head := recallArgs{now, l.cfg.MaxSkew, l.cfg.Keep, l.cfg.KeepFor, l.known}
	args := head.appendTo(make([]string, 0, recallArgsSize+recallItemSize*len(batch)))
	for _, r := range batch {
		item := recallItem{r.Job, r.Digest, r.Cursor, r.Opened, r.Confirmed, r.Sharded, r.Gap.text()}
		args = item.appendTo(args)
	}
	ks := recallScript.each(l.tag(batch[0].Job), gaps, func(i int) string { return batch[i].Job })
	reply, err := evaluate(ctx, l.client, recallScript, ks, args).Slice()
	if err != nil {
		return nil, redisconn.Classify("recall", err)
	}
	if err := refused(reply, now); err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	var again []Recalled
	for ; len(reply) >= 3; reply = reply[3:] {
		again = append(again, Recalled{At: int(number(reply[0])) - 1, Word: Status(text(reply[1])), Cursor: number(reply[2])})
	}
	return again, nil
}

// text spells a gap; "" for none.
func (p *SkippedRange) text() string {
	if p == nil {
		return ""
	}
	return ms(p.First) + "," + ms(p.Last) + "," + ms(p.Count)
}
