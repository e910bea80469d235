package ledger_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

// server is the one real redis-server of this package's tests; each test begins with an empty one.
var server *redistest.Server

// silent drops go-redis' own log while servers are away.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(silent{})
	os.Exit(withServer(m.Run))
}

func withServer(run func() int) int {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if server, err = redistest.StartProcess(redistest.ProcessConfig{Dir: dir}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	own := goleak.IgnoreCurrent() // goroutines that wait for the server belong to this function
	code := run()
	if err := goleak.Find(own); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := server.Kill(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
