package fence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
)

// defaultTable is the table of a SQL without a name.
const defaultTable = "escapement_fences"

// SQL is a guard in a SQL database, with two tables next to the data; see Schema. Its methods work in the caller's
// transaction, and take effect when that commits.
//
// Each isolation level works. Above READ COMMITTED in PostgreSQL, and after a deadlock in MySQL, Check and Once may
// return the database's error to repeat the transaction; no token was stored then. In SQLite begin with a write lock
// (_txlock=immediate), or let Check be the first statement: a transaction that has read cannot wait for a writer.
type SQL struct {
	dialect Dialect
	text    statements
}

// NewSQL returns a guard with the tables <table> and <table>_ticks. A name has at most 50 letters, digits and _, and
// may begin with a schema's name and a dot. "": escapement_fences. The error is an *InputError, also for a name that
// ends in _ticks. In PostgreSQL, a name without a schema means the first such table in the session's search_path: give
// the schema where another role may create tables in one of the path.
func NewSQL(d Dialect, table string) (*SQL, error) {
	if table == "" {
		table = defaultTable
	}
	if d < Postgres || d > MySQL {
		return nil, &InputError{"dialect", fmt.Sprintf("is %v; use Postgres, SQLite or MySQL", d)}
	}
	if !tableName.MatchString(table) {
		return nil, &InputError{"table", fmt.Sprintf("%.80q is not a plain name: use at most 50 letters, digits and _, with or without a schema's name and a dot", table)}
	}
	if strings.HasSuffix(strings.ToLower(table), "_ticks") {
		return nil, &InputError{"table", fmt.Sprintf("%.80q could be the second table of another guard; use a name that does not end in _ticks", table)}
	}
	return &SQL{dialect: d, text: d.statements(table)}, nil
}

// Schema returns two CREATE TABLE IF NOT EXISTS statements for your migrations, each with a semicolon and a newline
// at its end. The first table gets a row for each fence (see Drop), the second one for each shard of each tick that
// Once records (see Forget).
func (s *SQL) Schema() string { return s.text.schema }

// Check accepts the token for the fence and stores it, in tx, or returns a *StaleError. Let it be the first
// statement of tx. The fence's row stays locked until tx ends, so a transaction with another token waits, and two of
// them commit in the order of their tokens or not at all. After any error, roll back.
func (s *SQL) Check(ctx context.Context, tx *sql.Tx, fence string, token locking.Token) error {
	if err := Valid(fence, token); err != nil {
		return err
	}
	stored, err := s.claim(ctx, tx, fence, token)
	if err != nil {
		return explain(fmt.Sprintf("fence %q: compare token %d", fence, token), err)
	}
	//guard:fence-sql P5 a token smaller than one that the table has seen is refused
	if err := compare(fence, token, stored); err != nil {
		return err
	}
	return nil
}

// claim stores the token unless the stored one is larger, and returns the larger of both.
func (s *SQL) claim(ctx context.Context, tx *sql.Tx, fence string, token locking.Token) (stored locking.Token, err error) {
	if s.text.read == "" {
		err = tx.QueryRowContext(ctx, s.text.claim, fence, token).Scan(&stored) //nolint:gosec // G701: the texts are constants, and NewSQL has checked the table's name
		return stored, err
	}
	if _, err = tx.ExecContext(ctx, s.text.claim, fence, token); err != nil { //nolint:gosec // G701: as above
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.text.read, fence).Scan(&stored) //nolint:gosec // G701: as above
	return stored, err
}

// Drop deletes the fences without a token since before, by the database's clock, and returns how many. A write that
// is later than that is accepted with any token: choose a time longer than any lease and any delay.
func (s *SQL) Drop(ctx context.Context, tx *sql.Tx, before time.Time) (int64, error) {
	return s.delete(ctx, tx, s.text.drop, before.Unix())
}

func (s *SQL) delete(ctx context.Context, tx *sql.Tx, text string, before int64) (int64, error) {
	const op = "fence: delete old rows"
	res, err := tx.ExecContext(ctx, text, before)
	if err != nil {
		return 0, explain(op, err)
	}
	n, err := res.RowsAffected()
	return n, explain(op, err)
}

// Store returns a Store that checks each token in a transaction of its own, for Handler. A write that follows is not
// in the same step; see the package comment.
func (s *SQL) Store(db *sql.DB) Store { return &sqlStore{s, db} }

type sqlStore struct {
	guard *SQL
	db    *sql.DB
}

// Check implements Store.
func (s *sqlStore) Check(ctx context.Context, fence string, token locking.Token) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return explain(fmt.Sprintf("fence %q: begin", fence), err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := s.guard.Check(ctx, tx, fence, token); err != nil {
		return err
	}
	return explain(fmt.Sprintf("fence %q: commit token %d", fence, token), tx.Commit())
}

// explain adds op to an error of a database, and locking.ErrUnreachable without an answer. A nil error stays nil.
func explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case noAnswer(err):
		return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// noAnswer reports whether the connection was lost before the answer. Drivers report EOF or
// ErrBadConn.
func noAnswer(err error) bool {
	var netErr net.Error // also context.DeadlineExceeded, net.ErrClosed and a system call's error
	return errors.As(err, &netErr) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
