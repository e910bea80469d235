package scheduler_test

import (
	"context"
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// silent keeps the client's own log, one line a failed dial, out of the tests' output.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	flag.Parse()
	// Tests of real Clusters wait most of the time: on two cores as many of them as fit in memory
	// run beside each other.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		// A pool of a server that is gone looks once a second whether its client was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
