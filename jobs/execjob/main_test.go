package execjob

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
)

// asNode in the environment makes the test binary a node with one run of the script that it holds.
const asNode = "TEST_AS_NODE"

// asLease in its environment gives the run a lease that is renewed while the node runs, with this
// margin.
const asLease = "TEST_LEASE_MARGIN"

// leaseLasts is long enough for a busy machine to renew the lease.
const leaseLasts = 10 * time.Second

func asANode(script string) {
	run := info()
	if margin, err := time.ParseDuration(os.Getenv(asLease)); err == nil {
		run.Lease = renewedLease{margin}
	}
	fmt.Fprintln(os.Stdout, New(shell(script))(context.Background(), jobs.NewRun(run)))
}

// renewedLease is a lease that was renewed a moment ago at every look.
type renewedLease struct{ margin time.Duration }

func (l renewedLease) Left() time.Duration   { return leaseLasts }
func (l renewedLease) Margin() time.Duration { return l.margin }

func TestMain(m *testing.M) {
	if script := os.Getenv(asNode); script != "" {
		asANode(script)
		return
	}
	goleak.VerifyTestMain(m)
}
