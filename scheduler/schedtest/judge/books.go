package judge

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// The ledger's records.
type (
	// JobBooks is everything that is stored of one job.
	JobBooks = ledger.JobBooks
	// Entry is a job's current state.
	Entry = ledger.Entry
	// Row is a row of a job's history.
	Row = ledger.Row
	// Lease is a run in flight, a pending one, or an open tick of a sharded job.
	Lease = ledger.Lease
)

// ReadBooks reads the records of each job of a namespace, by name. A record that cannot be read is
// an error.
func ReadBooks(ctx context.Context, client redis.UniversalClient, namespace string) (map[string]JobBooks, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	books := map[string]JobBooks{}
	unread, err := l.EachJob(ctx, "", func(j JobBooks) { books[j.Entry.Job] = j })
	if err == nil && len(unread.LeftAlone) > 0 {
		err = fmt.Errorf("records that cannot be read: %v", unread.LeftAlone)
	}
	return books, err
}
