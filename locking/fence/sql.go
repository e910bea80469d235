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

// DefaultTable is the table of a SQL that was given no name.
const DefaultTable = "escapement_fences"

// SQL is a guard in a SQL database: two tables beside the data, Schema makes
// them. Its methods work in the caller's transaction, and what they promise
// holds when that commits.
//
// Any isolation level will do. At PostgreSQL's levels above READ COMMITTED, and
// in MySQL at a deadlock, Check and Once may return the database's error for
// "run this transaction again"; nothing was accepted then.
//
// In SQLite begin with a write lock (_txlock=immediate) or let Check be the
// first statement: a transaction that has read cannot wait for a writer.
type SQL struct {
	dialect Dialect
	text    statements
}

// NewSQL returns a guard with its tables called table and table_ticks: letters,
// digits and _, at most 50, with a schema's name and a dot in front or not. ""
// is DefaultTable. A name that ends in _ticks is refused. The error is an *InputError.
func NewSQL(d Dialect, table string) (*SQL, error) {
	if table == "" {
		table = DefaultTable
	}
	if d < Postgres || d > MySQL {
		return nil, &InputError{"dialect", fmt.Sprintf("is %v; use Postgres, SQLite or MySQL", d)}
	}
	if !tableName.MatchString(table) {
		return nil, &InputError{"table", fmt.Sprintf("%.80q is not a plain name: letters, digits and _, at most 50, a schema's name and a dot in front or not", table)}
	}
	if strings.HasSuffix(strings.ToLower(table), "_ticks") {
		return nil, &InputError{"table", fmt.Sprintf("%.80q could be the second table of another guard; use a name that does not end in _ticks", table)}
	}
	return &SQL{dialect: d, text: d.statements(table)}, nil
}

// Schema returns two CREATE TABLE IF NOT EXISTS statements, each ended by a
// semicolon and a newline, for your migrations. Fences grow by one row for each
// name (see Drop), what Once notes by one row for each shard of each tick (see
// Forget).
func (s *SQL) Schema() string { return s.text.schema }

// Check accepts the token for the fence and remembers it, in tx, or returns a
// *StaleError. Let it be the first statement of tx. The fence's row stays locked
// until tx ends, so whoever comes with another token waits, and what two of them
// do commits in the order of their tokens or not at all. After any error, roll
// back.
func (s *SQL) Check(ctx context.Context, tx *sql.Tx, fence string, token locking.Token) error {
	if err := Valid(fence, token); err != nil {
		return err
	}
	stored, err := s.claim(ctx, tx, fence, token)
	if err != nil {
		return explain(fmt.Sprintf("fence %q: compare token %d", fence, token), err)
	}
	//guard:fence-sql P5 a token smaller than one that the table has seen is refused
	if err := judge(fence, token, stored); err != nil {
		return err
	}
	return nil
}

// claim stores the token unless a larger one is there, and returns the larger.
func (s *SQL) claim(ctx context.Context, tx *sql.Tx, fence string, token locking.Token) (stored locking.Token, err error) {
	if s.text.read == "" {
		err = tx.QueryRowContext(ctx, s.text.claim, fence, token).Scan(&stored) //nolint:gosec // G701: the texts are ours, and NewSQL has looked at the table's name
		return stored, err
	}
	if _, err = tx.ExecContext(ctx, s.text.claim, fence, token); err != nil { //nolint:gosec // G701: as above
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.text.read, fence).Scan(&stored) //nolint:gosec // G701: as above
	return stored, err
}

// Drop deletes the fences that nobody has shown a token for since before, by the
// database's clock, and returns how many. A write later than that is accepted
// whatever its token: choose a time that no lease, and nothing in flight, has
// lived through.
func (s *SQL) Drop(ctx context.Context, tx *sql.Tx, before time.Time) (int64, error) {
	return s.delete(ctx, tx, s.text.drop, before.Unix())
}

func (s *SQL) delete(ctx context.Context, tx *sql.Tx, text string, before int64) (int64, error) {
	const op = "fence: delete what is old"
	res, err := tx.ExecContext(ctx, text, before)
	if err != nil {
		return 0, explain(op, err)
	}
	n, err := res.RowsAffected()
	return n, explain(op, err)
}

// Store returns a Store that checks each token in a transaction of its own. It
// only says who came last: see the package comment on comparing where the effect
// happens.
func (s *SQL) Store(db *sql.DB) Store { return &sqlStore{s, db} }

type sqlStore struct {
	guard *SQL
	db    *sql.DB
}

// Check is described at Store.
func (s *sqlStore) Check(ctx context.Context, fence string, token locking.Token) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return explain(fmt.Sprintf("fence %q: begin", fence), err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := s.guard.Check(ctx, tx, fence, token); err != nil {
		return err
	}
	return explain(fmt.Sprintf("fence %q: commit token %d", fence, token), tx.Commit())
}

// explain adds op to an error of a database, and locking.ErrUnreachable when
// there was no answer. A nil error stays nil.
func explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case noAnswer(err):
		return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// noAnswer reports whether the connection was gone before the answer came. A
// server that ends between the two reads as EOF in some drivers, and as
// ErrBadConn in others.
func noAnswer(err error) bool {
	var netErr net.Error // also context.DeadlineExceeded, net.ErrClosed and a system call's error
	return errors.As(err, &netErr) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
