package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrDone is returned by Once when the effect of this tick is already committed:
// roll back, and report success.
var ErrDone = errors.New("done already")

// Once notes, in tx, that the effect of one shard of one tick of a job is there.
// It returns an error that wraps ErrDone when another transaction has committed
// that before; one that has not ended yet is waited for. So of all that name the
// same job, tick and shard, one commits, however many runs there were and
// whatever their tokens.
//
// The job's name has 1 to 512 bytes of printable UTF-8. The tick counts to the
// millisecond. Two runs by hand may have the same tick, or that of a scheduled
// one: if each is to count, add the run's id to the job's name. For a job
// without shards, shard is 0.
func (s *SQL) Once(ctx context.Context, tx *sql.Tx, job string, tick time.Time, shard int) error {
	if err := checkName("job", job); err != nil {
		return err
	}
	if tick.IsZero() {
		return &InputError{"tick", "is the zero time; a run without a tick cannot be told from another"}
	}
	if shard < 0 || shard > math.MaxInt32 {
		return &InputError{"shard", fmt.Sprintf("is %d; it lies between 0 and %d", shard, math.MaxInt32)}
	}
	what := fmt.Sprintf("job %q, tick %s, shard %d", job, tick.UTC().Format("2006-01-02T15:04:05.000Z07:00"), shard)
	res, err := s.once(ctx, tx, job, tick, shard)
	if err != nil {
		return explain("fence: note "+what, err)
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

// Forget deletes what Once has noted for ticks before the given one, of all
// jobs, and returns how many. A tick that was forgotten and is run again counts
// again: keep at least what may still be rerun, caught up or handed back.
func (s *SQL) Forget(ctx context.Context, tx *sql.Tx, before time.Time) (int64, error) {
	return s.delete(ctx, tx, s.text.forget, before.UnixMilli())
}
