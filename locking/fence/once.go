package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrDone is returned by Once when the effect of this tick is committed already: roll back, and report success.
var ErrDone = errors.New("done already")

// Once records in tx that the effect of one shard of a job's tick is done. Of all transactions that name the same
// job, tick and shard, one commits, whatever the number of runs and their tokens.
//
// The error wraps ErrDone when another transaction has committed the record before. Once waits for
// a transaction with the same record that has not ended. The job's name has 1 to 512 bytes of
// printable UTF-8. The tick counts to the millisecond. For a job without shards, shard is 0. Two
// runs by hand may have the same tick, or the tick of a scheduled run: if each of them counts, add
// the run's id to the job's name.
func (s *SQL) Once(ctx context.Context, tx *sql.Tx, job string, tick time.Time, shard int) error {
	if err := checkName("job", job); err != nil {
		return err
	}
	if tick.IsZero() {
		return &InputError{"tick", "is the zero time; use what Run.Tick returns"}
	}
	if shard < 0 || shard > math.MaxInt32 {
		return &InputError{"shard", fmt.Sprintf("is %d; it lies between 0 and %d", shard, math.MaxInt32)}
	}
	what := fmt.Sprintf("job %q, tick %s, shard %d", job, tick.UTC().Format("2006-01-02T15:04:05.000Z07:00"), shard)
	res, err := s.once(ctx, tx, job, tick, shard)
	if err != nil {
		return explain("fence: record "+what, err)
	}
	if res == 0 {
		return fmt.Errorf("fence: %s: %w: another run has committed it; roll back and report success", what, ErrDone)
	}
	return nil
}

func (s *SQL) once(ctx context.Context, tx *sql.Tx, job string, tick time.Time, shard int) (int64, error) {
	res, err := tx.ExecContext(ctx, s.text.once, job, tick.UnixMilli(), shard)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Forget deletes the records of Once for ticks before a time, of all jobs, and returns how many. A deleted tick
// that is run again has its effect again: keep the ticks that may still be rerun or caught up.
func (s *SQL) Forget(ctx context.Context, tx *sql.Tx, before time.Time) (int64, error) {
	return s.delete(ctx, tx, s.text.forget, before.UnixMilli())
}
