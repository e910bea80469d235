package schedtest

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Trigger asks for one run of a job by hand.
type Trigger struct {
	When time.Duration // since the start
	Job  string
}

// pull asks for a run by hand, as an operator's tool does that is near Redis. If Redis is away, or
// does not know the job yet, the operator gives up.
func (c *cluster) pull(no int, t Trigger) {
	if !c.redis.up || c.over {
		return
	}
	id := fmt.Sprintf("hand-%d", no)
	if err := c.enqueue(t.Job, id); err != nil {
		c.note("hand", "%s of %s is refused: %v", id, t.Job, err)
		return
	}
	c.requests[t.Job] = append(c.requests[t.Job], c.redisTime())
	c.runs[id] = &passage{job: t.Job, stage: pending}
	c.note("hand", "%s of %s is pending", id, t.Job)
}

// enqueue takes no time: whoever pulls sits beside Redis.
func (c *cluster) enqueue(job, id string) error {
	client := c.server.Client()
	defer client.Close()
	l, err := ledger.OpenExisting(context.Background(), client, ledger.Config{Namespace: c.plan.Config.Namespace})
	if err != nil {
		return err
	}
	_, err = l.Trigger(context.Background(), job, ledger.Trigger{Run: id})
	return err
}
