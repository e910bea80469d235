package schedtest_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// go-redis says on stderr what the nodes see anyway.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}
