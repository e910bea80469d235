//go:build unix

package pglock_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/pglock"
	"github.com/escapement/escapement/locking/redistest"
)

// network adds the Network of package locktest to a redistest.Net, which works for any protocol of one write for each request.
type network struct {
	redistest.Net
	noCancel bool // cancel requests are dropped

	mu    sync.Mutex
	conns []net.Conn
}

func (n *network) LoseReply() { n.LoseReplies(1, "escapement") }

// dial connects over the network.
func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return n.Wrap(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.conns = append(n.conns, c)
			if n.noCancel {
				return uncancelled{c}, nil
			}
		}
		return c, err
	})(ctx, network, addr)
}

// uncancelled is a connection that drops a cancel request, and ends instead.
type uncancelled struct{ net.Conn }

func (c uncancelled) Write(p []byte) (int, error) {
	const cancelRequest = 80877102
	if len(p) == 16 && binary.BigEndian.Uint32(p[4:]) == cancelRequest {
		return len(p), c.Close()
	}
	return c.Conn.Write(p)
}

// hangUp heals the network and closes its connections. On a connection that has lost a packet, pgx
// would wait 15 s for an answer.
func (n *network) hangUp() {
	n.Heal()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
}

// over returns the ConnConfig of dsn over a network.
func (n *network) over(tb testing.TB, dsn string) *pgx.ConnConfig {
	tb.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	c.DialFunc = n.dial
	return c
}

// counter counts statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// connect returns a pool for dsn over a network. It is closed at the end of the test.
func connect(tb testing.TB, dsn string, n *network, trace pgx.QueryTracer) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	if n != nil {
		cfg.ConnConfig.DialFunc = n.dial
	}
	cfg.ConnConfig.Tracer = trace
	pool, err := pgxpool.NewWithConfig(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if n != nil {
			n.hangUp()
		}
		pool.Close()
	})
	return pool
}

var namespaces atomic.Int64

// database is an empty installation in a server.
type database struct {
	dsn    string // of the pools
	listen string // of the notifications; "" for none
	pooled bool   // dsn is a pooler's
	cfg    pglock.Config
	admin  *pgxpool.Pool
	sent   counter
}

// newDatabase migrates a namespace of its own. Pools connect to dsn, which may be a pooler's.
func newDatabase(tb testing.TB, dsn, listen string) *database {
	tb.Helper()
	d := &database{dsn: dsn, listen: listen, pooled: listen != "" && listen != dsn, cfg: pglock.Config{Namespace: fmt.Sprintf("escapement%d", namespaces.Add(1)), CallTimeout: 5 * time.Second}}
	d.admin = connect(tb, dsn, nil, nil)
	if err := pglock.Migrate(tb.Context(), d.admin, d.cfg); err != nil {
		tb.Fatal(err)
	}
	return d
}

// theDatabase is a database of the shared server.
func theDatabase(tb testing.TB) *database {
	tb.Helper()
	dsn := theServer(tb).dsn()
	return newDatabase(tb, dsn, dsn)
}

// driver returns a driver with a network of its own.
func (d *database) driver(tb testing.TB) (*pglock.Driver, *network) {
	tb.Helper()
	n := &network{noCancel: d.pooled}
	cfg := d.cfg
	if d.listen != "" {
		cfg.Listen = n.over(tb, d.listen)
	}
	driver := pglock.NewDriver(connect(tb, d.dsn, n, &d.sent), cfg)
	tb.Cleanup(func() {
		n.Heal()
		driver.Close()
	})
	return driver, n
}

func (d *database) exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := d.admin.Exec(tb.Context(), statement, append([]any{pgx.QueryExecModeExec}, args...)...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// count returns how many rows a table of the locks has.
func (d *database) count(tb testing.TB, table string) (n int) {
	tb.Helper()
	err := d.admin.QueryRow(tb.Context(), "SELECT count(*) FROM "+d.cfg.Namespace+"_"+table, pgx.QueryExecModeExec).Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func (d *database) store() locktest.Store {
	return locktest.Store{
		Connect: func(tb testing.TB) (locking.Driver, locktest.Network) { return d.driver(tb) },
		Forget: func(tb testing.TB) {
			d.exec(tb, "TRUNCATE "+d.cfg.Namespace+"_locks, "+d.cfg.Namespace+"_lock_waiters")
		},
		Commands: d.sent.n.Load,
	}
}
