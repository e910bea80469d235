package gocronlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // of servers that are dead on purpose
	goleak.VerifyTestMain(m)
}
