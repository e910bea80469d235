package execjob

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
)

// asNode in the environment makes the test binary a node with one run of the script that it holds.
const asNode = "TEST_AS_NODE"

func TestMain(m *testing.M) {
	if script := os.Getenv(asNode); script != "" {
		fmt.Fprintln(os.Stdout, New(shell(script))(context.Background(), jobs.NewRun(info())))
		return
	}
	goleak.VerifyTestMain(m)
}
