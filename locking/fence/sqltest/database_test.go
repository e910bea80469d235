package sqltest_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// database is an empty one with a guard's tables in it.
type database struct {
	*sql.DB
	dialect fence.Dialect
	table   string
	guard   *fence.SQL
}

var names atomic.Int64

// databases are the two kinds, and how an empty one is made.
var databases = []struct {
	name string
	open func(t *testing.T) *database
}{
	{"postgres", func(t *testing.T) *database {
		return open(t, fence.Postgres, "postgres", theServer(t).dsn())
	}},
	{"sqlite", func(t *testing.T) *database {
		return open(t, fence.SQLite, "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+
			"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	}},
}

// onEach runs a test against each kind of database.
func onEach(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	for _, kind := range databases {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.open(t)) })
	}
}

func open(t *testing.T, dialect fence.Dialect, driver, dsn string) *database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &database{DB: db, dialect: dialect, table: fmt.Sprintf("f%d", names.Add(1))}
	if d.guard, err = fence.NewSQL(dialect, d.table); err != nil {
		t.Fatal(err)
	}
	d.must(t, d.guard.Schema())
	d.must(t, d.guard.Schema()) // made once more, it is left as it is
	d.must(t, `CREATE TABLE <t>_log (n BIGINT NOT NULL, token BIGINT NOT NULL);
		CREATE TABLE <t>_count (n BIGINT NOT NULL); INSERT INTO <t>_count VALUES (0);
		CREATE TABLE <t>_rows (id BIGINT PRIMARY KEY, body TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`)
	return d
}

// say fills in the name of the tables, and the placeholders' numbers.
func (d *database) say(text string) string {
	text = strings.ReplaceAll(text, "<t>", d.table)
	if d.dialect == fence.Postgres {
		for i := 1; strings.Contains(text, "?"); i++ {
			text = strings.Replace(text, "?", fmt.Sprintf("$%d", i), 1)
		}
	}
	return text
}

func (d *database) must(t *testing.T, text string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), d.say(text), args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// in runs f in a transaction, and commits it unless f fails.
func (d *database) in(ctx context.Context, o *sql.TxOptions, f func(tx *sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// note writes a token to the log, with a number that orders the notes: a transaction with a note
// keeps other transactions from noting until it commits.
func (d *database) note(ctx context.Context, tx *sql.Tx, token locking.Token) error {
	if _, err := tx.ExecContext(ctx, d.say("UPDATE <t>_count SET n = n + 1")); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, d.say("INSERT INTO <t>_log (n, token) SELECT n, CAST(? AS BIGINT) FROM <t>_count"), token)
	return err
}

// log returns the committed notes, in order.
func (d *database) log(ctx context.Context) (tokens []locking.Token, err error) {
	rows, err := d.QueryContext(ctx, d.say("SELECT token FROM <t>_log ORDER BY n"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var token locking.Token
		if err := rows.Scan(&token); err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, rows.Err()
}

// waits returns a channel that is closed when a transaction is seen to wait for another. SQLite
// does not show it, so there the channel is closed after a while.
func (d *database) waits(ctx context.Context) <-chan struct{} {
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for range 1000 {
			pause := 300 * time.Millisecond
			if d.dialect == fence.Postgres {
				pause = 10 * time.Millisecond
				var n int
				err := d.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"+d.table+"%'").Scan(&n)
				if err != nil || n > 0 {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if d.dialect == fence.SQLite {
				return
			}
		}
	}()
	return seen
}
