package serve

import (
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, Dev, Run, Health, Version) }
