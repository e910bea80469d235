package ledger

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/escapement/escapement/locking/redistest"
)

// server is the one real redis-server of this package's tests; each test begins with an empty one.
var server *redistest.Server

func TestMain(m *testing.M) {
	flag.Parse()
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
	own := goleak.IgnoreCurrent() // what waits for the server belongs to this function
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
