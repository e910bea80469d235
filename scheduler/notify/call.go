package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// leaveAfter is how long a target may take to return after its time is over.
const leaveAfter = 5 * time.Second

// errLeft is the error of a message whose target has not returned from an earlier one.
var errLeft = errors.New("an earlier call has not returned, and it is not called again before that")

// callers call the targets of a notifier. A target that does not return in time is left behind, so
// that neither the other targets nor the notifier's lock wait for it. A target has one call at
// most: the next waits for the return of the last.
type callers struct {
	log *slog.Logger

	mu    sync.Mutex
	calls map[string]chan struct{} // by target; closed when the call has returned
}

func newCallers(log *slog.Logger) *callers {
	return &callers{log: log, calls: make(map[string]chan struct{})}
}

// call sends a message to a target once. It returns soon after the time of one try, and after ctx,
// whatever the target does.
func (c *callers) call(ctx context.Context, t Target, m Message) error {
	returned := make(chan struct{})
	if !c.begin(t.Name, returned) {
		return errLeft
	}
	var err error
	go func() {
		defer close(returned)
		err = t.Send(ctx, m)
	}()
	timer := time.NewTimer(t.tryTime() + leaveAfter)
	defer timer.Stop()
	select {
	case <-returned:
		return err
	case <-ctx.Done():
		timer.Reset(leaveAfter)
	case <-timer.C:
		return c.leave(t)
	}
	select {
	case <-returned:
		return err
	case <-timer.C:
		return c.leave(t)
	}
}

// begin reports whether a target may be called.
func (c *callers) begin(target string, returned chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier := c.calls[target]; earlier != nil {
		select {
		case <-earlier:
		default:
			return false
		}
	}
	c.calls[target] = returned
	return true
}

func (c *callers) leave(t Target) error {
	what := "its function ignores its context"
	switch {
	case len(t.Command) > 0:
		what = "its command cannot be ended"
	case t.Webhook != nil:
		what = "its connection cannot be ended"
	}
	c.log.Warn("a target of notifications does not return; it gets no further message until it does", "target", t.Name, "reason", what)
	return fmt.Errorf("%w: %s", errNoAnswer, what)
}
