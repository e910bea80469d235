package pglock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// maxTries is how often one call sends its statement, while isTransient.
	maxTries = 4

	// retryPause is the longest pause before the second try; it doubles with each further one.
	retryPause = 20 * time.Millisecond
)

// call runs a statement that returns one row, and scans the row into dest. All statements of this
// package may be repeated, so call repeats them after a transient failure. Without the tables it
// creates them once, if Config.Migrate is set.
func (d *Driver) call(ctx context.Context, op, statement string, args []any, dest ...any) error {
	if d.refused != nil {
		return d.refused
	}
	// No prepared statement: a pooler may give each transaction another connection.
	args = append([]any{pgx.QueryExecModeExec}, args...)
	migrate := d.migrate
	for try := 0; ; try++ {
		err := d.firstLook(ctx)
		if err == nil {
			err = d.pool.QueryRow(ctx, statement, args...).Scan(dest...)
		}
		if isMissing(err) && migrate {
			migrate = false
			if err = migrateObjects(ctx, d.pool, d.objects); err == nil {
				continue
			}
		}
		if err == nil {
			return nil
		}
		if !isTransient(err) || try == maxTries-1 || !pause(ctx, rand.N(retryPause<<try)) {
			return explain(op+" at postgres "+d.addr, err)
		}
	}
}

// firstLook checks the owners of the tables and functions once, if Config.Migrate is set: no
// Migrate may have checked them before.
func (d *Driver) firstLook(ctx context.Context) error {
	if !d.migrate || d.looked.Load() {
		return nil
	}
	err := checkOwners(ctx, d.pool, d.objects)
	d.looked.Store(err == nil)
	return err
}

// pause waits for wait and reports whether ctx is still alive then.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
