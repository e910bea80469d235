//go:build unix

package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// TestFailoverLooksAgainSoon has a node that claims lose sight of one master of a Cluster: it is to look again soon, until it has
// seen all of them.
func TestFailoverLooksAgainSoon(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	home, err := c.Master(ctx, "{escapement}:control")
	away := home
	for p := 0; err == nil && away == home; p++ {
		away, err = c.Master(ctx, fmt.Sprintf("{escapement:%d}:jobs", p))
	}
	if err != nil {
		t.Fatal(err)
	}
	var road redistest.Net // to the master that is going to be away
	client := c.ClientOver(t, func(addr string) *redistest.Net {
		if addr == away.Addr() {
			return &road
		}
		return nil
	})
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }})
	n, err := New(client, reg, Config{FailoverHold: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.open(ctx); err != nil {
		t.Fatal(err)
	}
	defer n.leave(ctx)

	look := func() time.Duration {
		n.resample(ctx)
		return n.failover.step(ctx)
	}
	until := func(what string, want time.Duration) {
		t.Helper()
		for got := look(); got != want; got = look() {
			if !pause(ctx, 20*time.Millisecond) {
				t.Fatalf("%s: it looks again after %s; want %s", what, got, want)
			}
		}
	}
	until("when all masters are seen", sampleEvery)
	road.Cut()
	if got := look(); got != assertEvery {
		t.Errorf("when one master is not seen: it looks again after %s; want %s", got, assertEvery)
	}
	if n.failover.holding() != nil {
		t.Error("a master that is not seen keeps the node from claiming at the others")
	}
	road.Heal()
	until("when all masters are seen again", sampleEvery)
}
