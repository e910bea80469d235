//go:build unix

package pglock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/escapement/escapement/locking/locktest"
)

// newPooler starts pgbouncer in transaction mode in front of s.
func newPooler(tb testing.TB, s *server) *server {
	tb.Helper()
	path, err := program("pgbouncer", "pgbouncer")
	if err != nil {
		tb.Fatal(err)
	}
	p, err := newServer()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.remove(); err != nil {
			tb.Error(err)
		}
	})
	ini := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 10
server_idle_timeout = 5
`, s.port, p.port)
	file := filepath.Join(p.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil {
		tb.Fatal(err)
	}
	p.args = []string{path, file}
	if err := p.start(); err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestConformanceBehindPooler: each statement may reach the server over another connection. pgbouncer 1.18, which Debian 12 has,
// sometimes exits when a client that has sent a cancel request leaves (pgbouncer/pgbouncer#801), so none are sent here.
func TestConformanceBehindPooler(t *testing.T) {
	t.Parallel()
	s := newPostgres(t, "fsync=off")
	p := newPooler(t, s)
	locktest.RunParallel(t, func(tb testing.TB) locktest.Store { return newDatabase(tb, p.dsn(), s.dsn()).store() })
}
