package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A promotion over a way on which each question is older than max_skew when it arrives says that, and not that jobs kept changing. The
// same call goes on once the way is well.
func TestPromoteOverASlowWay(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		c.start("old", scheduler.Config{}, eachSecond("job", s))
		time.Sleep(3 * time.Second)
		c.start("new", scheduler.Config{Generation: "neo"}, eachSecond("job", s))
		time.Sleep(5 * time.Second)
		client := c.client()
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(around{script: "define", before: func() { time.Sleep(1500 * time.Millisecond) }})
		i := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, ""))
		if _, err := i.Promote(t.Context(), "neo", scheduler.PromoteOptions{}); !errors.Is(err, ledger.ErrClock) {
			t.Errorf("got %v", err)
		}
		if p := c.promote("neo", scheduler.PromoteOptions{}); !p.Resumed || p.Switched.Count != 1 {
			t.Errorf("again: %+v", p)
		}
	})
}
