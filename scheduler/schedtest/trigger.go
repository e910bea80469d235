package schedtest

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/ops"
)

// Trigger requests one run of a job by hand.
type Trigger struct {
	When time.Duration // since the start
	Job  string
}

// pull requests a run by hand, as an operator's tool near Redis does. If Redis is away, or has no
// such job yet, the operator gives up.
func (c *cluster) pull(no int, t Trigger) {
	if !c.redis.up || c.over {
		return
	}
	id := fmt.Sprintf("hand-%d", no)
	err := c.beside(func(l *ledger.Ledger, _ *ops.Client) error {
		_, err := c.trigger(l, t.Job, operate.TriggerRequest{Run: id})
		return err
	})
	if err != nil {
		c.note("hand", "%s of %s is refused: %v", id, t.Job, err)
		return
	}
	c.note("hand", "%s of %s is pending", id, t.Job)
}
