//go:build unix

package zklock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// ending stops the shared server after all tests.
type ending struct{ *testing.M }

func (e ending) Run() int {
	code := e.M.Run()
	if shared.server != nil {
		shared.server.kill()
	}
	_ = os.RemoveAll(shared.dir)
	return code
}

func TestMain(m *testing.M) {
	holdIfChild()
	goleak.VerifyTestMain(ending{m})
}
