package fence_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// The guards are held against real databases in the module sqltest. Here: failures, which real
// databases do not produce on demand, and decisions without a database.

func TestNewSQL(t *testing.T) {
	for _, c := range []struct {
		dialect fence.Dialect
		table   string
		want    string
	}{
		{fence.Postgres, "", ""},
		{fence.SQLite, "Fences_2", ""},
		{fence.MySQL, "app.fences", ""},
		{fence.Postgres, strings.Repeat("x", 50), ""},
		{fence.Postgres, strings.Repeat("x", 51), "fence: table \"xxx"},
		{fence.Postgres, "a; DROP TABLE b", `fence: table "a; DROP TABLE b" is not a plain name`},
		{fence.Postgres, "app.Fences_Ticks", `fence: table "app.Fences_Ticks" could be the second table of another guard`},
		{fence.SQLite, "ticks", ""},
		{fence.Postgres, `"a"`, "fence: table"},
		{fence.Postgres, "a.b.c", "fence: table"},
		{fence.Postgres, "a.", "fence: table"},
		{fence.Postgres, "1a", "fence: table"},
		{fence.Postgres, "a\n", "fence: table"},
		{fence.Postgres, "tâble", "fence: table"},
		{0, "", "fence: dialect is Dialect(0); use Postgres, SQLite or MySQL"},
		{9, "", "fence: dialect is Dialect(9)"},
	} {
		_, err := fence.NewSQL(c.dialect, c.table)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v %q: %v", c.dialect, c.table, err)
		}
	}
}

func TestSchema(t *testing.T) {
	for _, d := range []fence.Dialect{fence.Postgres, fence.SQLite, fence.MySQL} {
		s, err := fence.NewSQL(d, "app.f")
		if err != nil {
			t.Fatal(err)
		}
		text := s.Schema()
		if strings.Count(text, ";\n") != 2 || !strings.Contains(text, "app.f_ticks (") || strings.ContainsAny(text, "<>?$") {
			t.Errorf("%v:\n%s", d, text)
		}
		if strings.Contains(text, "VARBINARY") != (d == fence.MySQL) {
			t.Errorf("%v compares names by a collation:\n%s", d, text)
		}
	}
}

var tick = time.Date(2026, 3, 1, 12, 5, 0, 7_000_000, time.UTC)

// actions are the calls that talk to a database.
func actions(ctx context.Context) map[string]func(g *fence.SQL, tx *sql.Tx) error {
	return map[string]func(g *fence.SQL, tx *sql.Tx) error{
		"check": func(g *fence.SQL, tx *sql.Tx) error { return g.Check(ctx, tx, "a", 7) },
		"once":  func(g *fence.SQL, tx *sql.Tx) error { return g.Once(ctx, tx, "report", tick, 3) },
		"forget": func(g *fence.SQL, tx *sql.Tx) error {
			_, err := g.Forget(ctx, tx, tick)
			return err
		},
		"drop": func(g *fence.SQL, tx *sql.Tx) error {
			_, err := g.Drop(ctx, tx, tick)
			return err
		},
	}
}

func TestDatabaseFails(t *testing.T) {
	broken := errors.New("disk full")
	for _, c := range []struct {
		action  string
		dialect fence.Dialect
		err     error
		at      string
		want    string
	}{
		{"check", fence.Postgres, broken, "INSERT", `fence "a": compare token 7: disk full`},
		{"check", fence.MySQL, broken, "INSERT", `fence "a": compare token 7: disk full`},
		{"check", fence.MySQL, broken, "FOR UPDATE", `fence "a": compare token 7: disk full`},
		{"once", fence.SQLite, broken, "_ticks", `fence: record job "report", tick 2026-03-01T12:05:00.007Z, shard 3: disk full`},
		{"once", fence.SQLite, broken, "rows affected", `fence: record job "report", tick 2026-03-01T12:05:00.007Z, shard 3: disk full`},
		{"forget", fence.SQLite, broken, "DELETE", "fence: delete old rows: disk full"},
		{"forget", fence.SQLite, broken, "rows affected", "fence: delete old rows: disk full"},
		{"drop", fence.SQLite, broken, "DELETE", "fence: delete old rows: disk full"},
		{"check", fence.Postgres, context.DeadlineExceeded, "INSERT", `fence "a": compare token 7: store unreachable: context deadline exceeded`},
		{"check", fence.Postgres, driver.ErrBadConn, "INSERT", `fence "a": compare token 7: store unreachable: driver: bad connection`},
	} {
		s := &server{broken: c.err, at: c.at, row: int64(7)}
		err := s.used(t, c.dialect, actions(t.Context())[c.action])
		if err == nil || err.Error() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s at %s: got %v, want %s", c.action, c.at, err, c.want)
		}
		if errors.Is(err, locking.ErrUnreachable) != !errors.Is(c.err, broken) || errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrDone) {
			t.Errorf("%s at %s: %v is the wrong kind of error", c.action, c.at, err)
		}
	}
}

// The errors of drivers when the server ends, or the network does, in the middle.
func TestDatabaseGone(t *testing.T) {
	g, err := fence.NewSQL(fence.Postgres, "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		gone bool
	}{
		{driver.ErrBadConn, true},
		{sql.ErrConnDone, true},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{net.ErrClosed, true},
		{syscall.EPIPE, true},
		{syscall.ECONNRESET, true},
		{&net.DNSError{Err: "no such host"}, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, false}, // the caller's own doing
		{errors.New("disk full"), false},
		{sql.ErrTxDone, false},
	} {
		for _, at := range []string{"connect", "BEGIN", "INSERT", "COMMIT"} {
			s := &server{broken: fmt.Errorf("receive: %w", c.err), at: at, row: int64(7)}
			db := sql.OpenDB(s)
			err := g.Store(db).Check(t.Context(), "a", 7)
			doing := map[string]string{"INSERT": "compare token 7", "COMMIT": "commit token 7"}[at] // else it begins
			if errors.Is(err, locking.ErrUnreachable) != c.gone || !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), `fence "a": `+cmp.Or(doing, "begin")) {
				t.Errorf("%v at %s: got %v, want unreachable: %t", c.err, at, err, c.gone)
			}
			_ = db.Close()
		}
	}
}

// The MySQL texts are run by no server here; this test holds the decisions about its answers.
func TestMySQLIsJudged(t *testing.T) {
	s := &server{row: int64(9)}
	err := s.used(t, fence.MySQL, actions(t.Context())["check"])
	var stale *fence.StaleError
	if !errors.As(err, &stale) || stale.Max != 9 {
		t.Errorf("stored 9, shown 7: %v", err)
	}
	s = &server{row: int64(7), affected: 1}
	for _, name := range []string{"check", "once"} {
		if err := s.used(t, fence.MySQL, actions(t.Context())[name]); err != nil {
			t.Error(err)
		}
	}
	if err := (&server{}).used(t, fence.MySQL, actions(t.Context())["once"]); !errors.Is(err, fence.ErrDone) {
		t.Errorf("no row was inserted: %v", err)
	}
	for _, text := range s.statement {
		if strings.ContainsAny(text, "<>$") {
			t.Errorf("left open: %s", text)
		}
	}
}

func TestSQLInputs(t *testing.T) {
	for _, c := range inputs {
		s := &server{}
		err := s.used(t, fence.Postgres, func(g *fence.SQL, tx *sql.Tx) error { return g.Check(t.Context(), tx, c.fence, c.token) })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || len(s.statement) != 3 {
			t.Errorf("%.20q, %d: %v after %q", c.fence, c.token, err, s.statement)
		}
	}
	for _, c := range []struct {
		job   string
		tick  time.Time
		shard int
		want  string
	}{
		{"", tick, 0, "fence: job has no name"},
		{strings.Repeat("x", 513), tick, 0, "fence: job has a name of 513 bytes"},
		{"a", time.Time{}, 0, "fence: tick is the zero time"},
		{"a", tick, -1, "fence: shard is -1"},
		{"a", tick, 1 << 31, "fence: shard is 2147483648"},
	} {
		err := (&server{}).used(t, fence.Postgres, func(g *fence.SQL, tx *sql.Tx) error { return g.Once(t.Context(), tx, c.job, c.tick, c.shard) })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.20q, %s, %d: %v", c.job, c.tick, c.shard, err)
		}
	}
}

func TestUpdated(t *testing.T) {
	for _, c := range []struct {
		name   string
		server server
		token  locking.Token
		want   string
	}{
		{"changed", server{affected: 1}, 7, ""},
		{"stale", server{row: int64(9)}, 7, `fence "a": stale token 7: the guard has seen 9`},
		{"no such row", server{}, 7, `fence "a": no row to update with token 7: sql: no rows in result set: insert the row first`},
		{"NULL", server{null: true}, 7, "fence \"a\": no row was updated with token 7: the column is NULL"},
		{"equal", server{row: int64(7)}, 7, `fence "a": no row was updated with token 7, and the row's token is 7: check the other conditions`},
		{"not a number", server{row: "x"}, 7, `fence "a": read the stored token: sql: Scan error`},
		{"rows unknown", server{broken: io.ErrUnexpectedEOF, at: "rows affected"}, 7, `fence "a": count the rows that token 7 has changed: store unreachable: unexpected EOF`},
		{"read fails", server{broken: driver.ErrBadConn, at: "SELECT"}, 7, `fence "a": read the stored token: store unreachable`},
		{"input", server{affected: 1}, 0, "fence: token is 0"},
	} {
		err := c.server.used(t, fence.Postgres, func(_ *fence.SQL, tx *sql.Tx) error {
			res, err := tx.ExecContext(t.Context(), "UPDATE")
			if err != nil {
				return err
			}
			return fence.Updated(res, "a", c.token, func() *sql.Row { return tx.QueryRowContext(t.Context(), "SELECT") })
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if errors.Is(err, fence.ErrStale) != (c.name == "stale") || errors.Is(err, sql.ErrNoRows) != (c.name == "no such row") {
			t.Errorf("%s: the wrong kind of error: %v", c.name, err)
		}
	}
}
