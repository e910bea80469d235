package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/fence"
)

// server is a database with a fixed answer for each statement.
type server struct {
	broken    error // at the statement that contains at
	at        string
	row       driver.Value // the row of a query; nil: none
	null      bool         // it returns a NULL
	affected  int64
	statement []string
}

func (s *server) Connect(context.Context) (driver.Conn, error) { return conn{s}, s.fails("connect") }
func (s *server) Driver() driver.Driver                        { return nil }
func (s *server) fails(text string) error {
	s.statement = append(s.statement, text)
	if s.broken != nil && strings.Contains(text, s.at) {
		return s.broken
	}
	return nil
}

type conn struct{ s *server }

func (c conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c conn) Close() error                        { return nil }
func (c conn) Begin() (driver.Tx, error)           { return c, c.s.fails("BEGIN") }
func (c conn) Commit() error                       { return c.s.fails("COMMIT") }
func (c conn) Rollback() error                     { return c.s.fails("ROLLBACK") }
func (c conn) LastInsertId() (int64, error)        { return 0, errors.ErrUnsupported }
func (c conn) RowsAffected() (int64, error)        { return c.s.affected, c.s.fails("rows affected") }

func (c conn) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	return c, c.s.fails(text)
}

func (c conn) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	return &rows{c.s.row, c.s.row == nil && !c.s.null}, c.s.fails(text)
}

// rows is one row of one value, or none.
type rows struct {
	value driver.Value
	over  bool
}

func (r *rows) Columns() []string { return []string{"token"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(dest []driver.Value) error {
	if r.over {
		return io.EOF
	}
	dest[0], r.over = r.value, true
	return nil
}

// used runs one method in a transaction over s.
func (s *server) used(t *testing.T, d fence.Dialect, f func(g *fence.SQL, tx *sql.Tx) error) error {
	t.Helper()
	g, err := fence.NewSQL(d, "f")
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(s)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	return f(g, tx)
}
