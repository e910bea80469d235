package schedtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// books reads what the ledger recorded.
func (c *cluster) books(ctx context.Context) (verify.Books, error) {
	var b verify.Books
	client := c.server.Client()
	defer client.Close()
	namespace := c.plan.Config.Namespace
	inspector, err := scheduler.NewInspector(client, namespace)
	if err != nil {
		return b, err
	}
	chain, err := inspector.Verify(ctx, "")
	if errors.Is(err, scheduler.ErrUnknownNamespace) {
		return b, nil // Redis was emptied, and nobody came to write since
	}
	if err != nil {
		return b, err
	}
	for _, v := range chain {
		b.Chain = append(b.Chain, v.Job+": "+v.What)
	}
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err != nil {
		return b, err
	}
	stored, err := l.Jobs(ctx)
	if err != nil {
		return b, err
	}
	var names []string
	b.Cursor = make(map[string]time.Time)
	for _, s := range stored {
		names = append(names, s.Job)
		b.Cursor[s.Job] = time.Time{}
		if s.Cursor != 0 {
			b.Cursor[s.Job] = time.UnixMilli(s.Cursor).UTC()
		}
	}
	var foreign int
	if b.Rows, foreign, err = l.History(ctx, names); err != nil {
		return b, err
	}
	if foreign > 0 {
		b.Chain = append(b.Chain, fmt.Sprintf("%d rows of the history cannot be read", foreign))
	}
	b.Open, err = l.Open(ctx, names...)
	return b, err
}

// keeps says whether a key may be there when all nodes have left in peace: what is stored of each
// job for good, the control record, sets of definitions, which the next beat drops, and runs that were
// handed back at the end. That no pending run is old, the verifier holds.
func keeps(key string) bool {
	for _, end := range []string{"}:control", "}:jobs", "}:defs", "}:due", "}:sets", "}:sets:seen", "}:pending", "}:waiting"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return strings.Contains(key, "}:history:")
}

// leftovers looks for what should be gone after all nodes have stopped in peace. That no goroutine is left
// is held by the bubble: it does not end before.
func (c *cluster) leftovers() {
	for _, key := range c.server.Mini().Keys() {
		// A lease that was granted while the clock was ahead lapses when the clock comes there again.
		ahead := c.wentBack() && (strings.HasSuffix(key, "}:leases") || strings.HasSuffix(key, "}:runs"))
		if !keeps(key) && !ahead {
			c.blame(Leftover, "", "key %s", key)
		}
	}
	if n := c.conns.Load(); n != 0 {
		c.blame(Leftover, "", "%d connections are open", n)
	}
	for id, call := range c.calls {
		c.blame(Leftover, call.job, "run %s on %s has not ended", id, call.process.name)
	}
}
