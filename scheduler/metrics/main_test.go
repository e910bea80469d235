package metrics_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// silent keeps the client's own log, one line a failed dial, out of the tests' output.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	if url := os.Getenv(scrapeEnv); url != "" {
		scraper(url)
		return
	}
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}
