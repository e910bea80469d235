package judge

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// The ledger's records.
type (
	// JobSnapshot is everything that is stored of one job.
	JobSnapshot = query.JobSnapshot
	// Entry is a job's current state.
	Entry = ledger.Entry
	// Row is a row of a job's history.
	Row = ledger.Row
	// Run is a run in flight, a pending one, or an open tick of a sharded job.
	Run = ledger.Run
)

// ReadBooks reads the records of each job of a namespace, by name. A record that cannot be read is
// an error.
func ReadBooks(ctx context.Context, client redis.UniversalClient, namespace string) (map[string]JobSnapshot, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	books := map[string]JobSnapshot{}
	unread, err := query.EachJob(ctx, l, "", func(j JobSnapshot) { books[j.Entry.Job] = j })
	if err == nil && len(unread.UnknownFormat) > 0 {
		err = fmt.Errorf("records that cannot be read: %v", unread.UnknownFormat)
	}
	return books, err
}
