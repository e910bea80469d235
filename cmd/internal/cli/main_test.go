package cli

import (
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, commands...) }
