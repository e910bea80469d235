//go:build unix

package etcdlock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(holderEndpoint) != "" {
		if err := holdUntilAsked(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
