package epoch

import (
	"context"
	"fmt"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var recallScript = ledger.Ship("epoch/recall", nil)

// The words of Recall, besides Behind.
const (
	Before ledger.Status = "before" // the job was created and has been claimed since
	After  ledger.Status = "after"  // a restored run accounts for the tick
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
	Gap *ledger.SkippedRange
}

// Recalled is the answer to a KnownCursor that is to be reported again with a Gap.
type Recalled struct {
	At int // its index
	// Status is Before: the gap ends at Cursor. Behind: the job stands at Cursor, where the gap
	// begins. After: the first tick after Cursor is to be reported.
	Status ledger.Status
	Cursor int64 // ms
}

// Recall reports the cursors of jobs of one partition, at most RecallMax, in the epoch that At
// names, after a failover. A job that Redis has lost begins at the latest cursor that nodes report.
// Recall may be repeated. now is the caller's idea of Redis' time, ms. It returns ErrClock, or
// ErrServer in another epoch.
func Recall(ctx context.Context, l *ledger.Ledger, now int64, batch []KnownCursor) ([]Recalled, error) {
	gaps := 0
	if slices.ContainsFunc(batch, func(r KnownCursor) bool { return r.Gap != nil }) {
		gaps = len(batch)
	}
	head := recallArgs{now, l.Config.MaxSkew, l.Config.Keep, l.Config.KeepFor, l.Known}
	args := head.appendTo(make([]string, 0, recallArgsSize+recallItemSize*len(batch)))
	for _, r := range batch {
		item := recallItem{r.Job, r.Digest, r.Cursor, r.Opened, r.Confirmed, r.Sharded, r.Gap.Text()}
		args = item.appendTo(args)
	}
	ks := recallScript.Each(l.Tag(batch[0].Job), gaps, func(i int) string { return batch[i].Job })
	reply, err := ledger.Evaluate(ctx, l.Client, recallScript, ks, args).Slice()
	if err != nil {
		return nil, redisconn.Classify("recall", err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	var again []Recalled
	for ; len(reply) >= 3; reply = reply[3:] {
		again = append(again, Recalled{At: int(ledger.Number(reply[0])) - 1, Status: ledger.Status(ledger.Text(reply[1])), Cursor: ledger.Number(reply[2])})
	}
	return again, nil
}
