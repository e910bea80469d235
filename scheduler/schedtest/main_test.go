package schedtest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// go-redis logs to stderr the errors that it also returns to the nodes.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}
