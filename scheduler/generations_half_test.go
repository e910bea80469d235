package scheduler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// TestPromoteSomeAmidAll: a promotion of all jobs that was killed half way is not forgotten over one of some.
func TestPromoteSomeAmidAll(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		list := many(6, &sink{})
		c.start("a", scheduler.Config{Generation: "old"}, list...)
		time.Sleep(3 * time.Second)
		c.start("b", scheduler.Config{Generation: "neo"}, list...)
		time.Sleep(5 * time.Second)
		begun := func() string { return server.Mini().HGet("{escapement}:control", "promoting") }
		for at := 1; begun() == "" && at < 60; at++ {
			if _, err := c.promoteKilled(&killer{at: at, after: true}, "neo", scheduler.PromoteOptions{}); err == nil {
				t.Fatal("it was never killed half way")
			}
		}
		_, err := c.promoteKilled(&killer{}, "old", scheduler.PromoteOptions{Pattern: "job-0*"})
		if !errors.Is(err, scheduler.ErrRefused) || !strings.Contains(err.Error(), `promote "neo" again`) {
			t.Errorf("got %v; want it refused with the next step", err)
		}
		if _, err := c.promoteKilled(&killer{}, "neo", scheduler.PromoteOptions{}); err != nil || begun() != "" {
			t.Errorf("promoted again: %v, under way %q", err, begun())
		}
		if _, err := c.promoteKilled(&killer{}, "old", scheduler.PromoteOptions{Pattern: "job-0*"}); err != nil {
			t.Errorf("then some of them: %v", err)
		}
		time.Sleep(3 * time.Second)
	})
}
