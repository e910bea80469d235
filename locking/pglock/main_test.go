//go:build unix

package pglock_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared is the server of most tests, started by the first that wants it. It does not wait for the disk.
var shared struct {
	sync.Mutex
	server *server
	err    error
}

// ending stops the server after all tests.
type ending struct{ *testing.M }

func (e ending) Run() int {
	code := e.M.Run()
	if err := shared.server.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	if dsn := os.Getenv(holderDSN); dsn != "" {
		os.Exit(holdAndLook(dsn, os.Getenv(holderNamespace)))
	}
	goleak.VerifyTestMain(ending{m})
}

// theServer returns the shared server. A missing PostgreSQL fails the test; it is never skipped.
func theServer(tb testing.TB) *server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startPostgres("fsync=off")
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}
