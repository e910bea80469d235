package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/escapement/escapement/jobs"
)

// schema: the further columns of target name the run that moved the row. A span is stored once for
// each tick. A fence is the largest token that has written to a shard.
const schema = `
CREATE TABLE IF NOT EXISTS source (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS target (id INTEGER PRIMARY KEY, body TEXT NOT NULL,
	node TEXT NOT NULL, shard INTEGER NOT NULL, token INTEGER NOT NULL, tick INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS span (tick INTEGER PRIMARY KEY, first INTEGER NOT NULL, behind INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fence (shard INTEGER PRIMARY KEY, token INTEGER NOT NULL);`

// errStale is returned when a run writes after a run that was granted the same shard later.
var errStale = errors.New("stale: a run with a larger token has written to this shard; this one must end")

// table is the database.
type table struct{ db *sql.DB }

// openTable opens the database and creates missing tables. The caller closes it.
func openTable(ctx context.Context, path string) (*table, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// SQLite has one writer. The shards of a node wait for it here, where the wait ends with the run's context.
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("create the tables in %s: %w", path, err), db.Close())
	}
	return &table{db}, nil
}

func (t *table) close() error { return t.db.Close() }

// fill puts new rows into source, with ids that no row had before.
func (t *table) fill(ctx context.Context, rows int) error {
	return t.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			WITH RECURSIVE new(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM new WHERE i < ?),
				used(id) AS (SELECT coalesce(max(id), 0) FROM (SELECT id FROM source UNION ALL SELECT id FROM target))
			INSERT INTO source (id, body) SELECT used.id + i, 'row ' || (used.id + i) FROM new, used`, rows)
		return err
	})
}

// span returns the ids that a tick moves, [from, to). All shards must cut the same range. When the last
// shard starts, the first has emptied a part of the range: so the first shard stores it for all.
func (t *table) span(ctx context.Context, tick time.Time) (from, to int64, err error) {
	err = t.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO span (tick, first, behind) SELECT ?, coalesce(min(id), 0), coalesce(max(id) + 1, 0) FROM source
			WHERE true ON CONFLICT DO NOTHING`, tick.UnixMilli())
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT first, behind FROM span WHERE tick = ?`, tick.UnixMilli()).Scan(&from, &to)
	})
	return from, to, err
}

// batch moves the next rows of [lo, hi) in one transaction and returns their number, fewer than
// batchRows at the end. It returns errStale, and has moved nothing, when a later run of the shard has
// written.
func (t *table) batch(ctx context.Context, run *jobs.Run, lo, hi int64) (n int, err error) {
	// Both statements see the same rows: the transaction has the only right to write from its start.
	const next = ` IN (SELECT id FROM source WHERE id >= ? AND id < ? ORDER BY id LIMIT ?)`
	err = t.write(ctx, func(tx *sql.Tx) error {
		if err := raise(ctx, tx, run); err != nil {
			return err
		}
		copied, err := affected(tx.ExecContext(ctx, `
			INSERT INTO target (id, body, node, shard, token, tick) SELECT id, body, ?, ?, ?, ? FROM source WHERE id`+next,
			run.Node(), run.Shard(), run.Token(), run.Tick().UnixMilli(), lo, hi, batchRows))
		if err != nil {
			return err
		}
		deleted, err := affected(tx.ExecContext(ctx, `DELETE FROM source WHERE id`+next, lo, hi, batchRows))
		if err == nil && deleted != copied {
			err = fmt.Errorf("%d rows copied, %d deleted: is there a trigger on the tables?", copied, deleted)
		}
		n = int(copied)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("shard %d, token %d, rows [%d, %d): %w", run.Shard(), run.Token(), lo, hi, err)
	}
	return n, nil
}

// raise lifts the shard's fence to the run's token, or returns errStale when the fence is higher. It
// must run in the transaction that it guards. Equal is allowed: a run writes many batches.
func raise(ctx context.Context, tx *sql.Tx, run *jobs.Run) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO fence (shard, token) VALUES (?, ?) ON CONFLICT DO NOTHING`, run.Shard(), run.Token())
	if err != nil {
		return err
	}
	n, err := affected(tx.ExecContext(ctx, `UPDATE fence SET token = ? WHERE shard = ? AND token <= ?`,
		run.Token(), run.Shard(), run.Token()))
	if err == nil && n == 0 {
		err = jobs.Permanent(errStale) // if you add a Retry: no try can help here
	}
	return err
}

// write runs f in a transaction, which is undone when f returns an error.
func (t *table) write(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to undo, before it the error is on its way
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
