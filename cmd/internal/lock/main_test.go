package lock

import (
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, Lock, Locks) }
