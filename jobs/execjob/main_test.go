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

// asLease in its environment gives the run a lease of three seconds, with this margin.
const asLease = "TEST_LEASE_MARGIN"

// leaseLasts is long enough for a busy machine to start the command and what that starts.
const leaseLasts = 3 * time.Second

func asANode(script string) {
	run := info()
	if margin, err := time.ParseDuration(os.Getenv(asLease)); err == nil {
		ends := time.Now().Add(leaseLasts)
		run.Lease = fixedLease{ends, margin}
	}
	fmt.Fprintln(os.Stdout, New(shell(script))(context.Background(), jobs.NewRun(run)))
}

// fixedLease is a lease that nobody renews.
type fixedLease struct {
	ends   time.Time
	margin time.Duration
}

func (l fixedLease) Left() time.Duration   { return time.Until(l.ends) }
func (l fixedLease) Margin() time.Duration { return l.margin }

func TestMain(m *testing.M) {
	if script := os.Getenv(asNode); script != "" {
		asANode(script)
		return
	}
	goleak.VerifyTestMain(m)
}
