package failover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
)

// lostForGood lists the records that no node remembers: a Redis that has lost its data has lost them for good.
const lostForGood = "nodes have stored again the jobs, cursors, runs and backfills that they know; pauses, drains, runs by hand that waited, " +
	"unique keys, checkpoints and history that were there are lost"

// recordLoss logs that partitions had lost records, and notes it in the audit. The node that made the incarnation does so, once.
func (es *Epochs) recordLoss(parts []int) {
	if len(parts) == 0 {
		return
	}
	slices.Sort(parts)
	which := strings.Trim(fmt.Sprint(parts), "[]")
	es.Log.Warn("Redis had lost records", "partitions", which, "what", lostForGood)
	ctx, cancel := context.WithTimeout(context.Background(), ledger.CallTimeout)
	defer cancel()
	err := operate.Audit(ctx, es.Ledger, operate.Action{
		Author: "Redis", Via: "node " + es.Name, Name: "records lost", Target: "partition " + which, Detail: lostForGood,
	})
	if err != nil {
		es.Log.Warn("that records were lost is missing in the audit", "error", err)
	}
}
