package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// takenWithin is how long Trigger waits for a node to take a job that is stored.
const takenWithin = 2 * time.Second

// TriggerOptions are the options of Trigger. The zero value runs the job now, without a payload.
type TriggerOptions struct {
	// Payload is passed to the function: JSON, at most 64 KiB, and 1 KiB while 256 runs of the
	// job's partition are due and wait. Default none.
	Payload json.RawMessage `json:"payload,omitempty"`
	// At is when to run, and the run's tick, in whole milliseconds, from 1970 to 9999. A past
	// instant runs at once. Default now.
	At time.Time `json:"at,omitempty"`
	// Unique identifies the request within its job: a request with the same key returns the first
	// one's run, and its own payload and time are ignored. The key is kept for 168 h after At (or
	// after now), and as long as the history has the run. Default none: each request makes a run.
	Unique string `json:"unique,omitempty" header:"Idempotency-Key"`
}

func triggerJob(ctx context.Context, c *conn, name string, o TriggerOptions) (id string, err error) {
	if len(o.Payload) > 0 && !json.Valid(o.Payload) {
		return "", fmt.Errorf("%w: run %s: the payload is not JSON; quote a plain text: '\"text\"'", ErrRefused, name)
	}
	at, err := instant("run "+name, o.At)
	if err != nil {
		return "", err
	}
	l, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	want := ledger.Trigger{Run: newID(), Payload: o.Payload, At: at, Unique: o.Unique}
	id, err = trigger(ctx, l, name, want)
	if errors.Is(err, locking.ErrUnreachable) && o.Unique == "" {
		err = fmt.Errorf("%w; if the request arrived all the same, it is run %s", err, want.Run)
	}
	return id, err
}

// trigger also waits until a node has registered a job that was stored a moment ago.
func trigger(ctx context.Context, l *ledger.Ledger, name string, want ledger.Trigger) (string, error) {
	for until := time.Now().Add(takenWithin); ; {
		id, err := l.Trigger(ctx, name, want)
		if !errors.Is(err, ErrUnknownJob) {
			return id, err
		}
		found, failed := l.CatalogJobs(ctx, name)
		switch {
		case failed != nil:
			return "", failed
		case found[0].Version == 0:
			return "", err
		case time.Now().After(until) || !wait.For(ctx, takenWithin/20):
			return "", fmt.Errorf("%w: run %s: it is stored, and no node has taken it yet; try again in a second, and see that a node with its handler lives", ErrRefused, name)
		}
	}
}

// detail is the request in words. The payload is not shown: it may be confidential.
func (o TriggerOptions) detail(id string) string {
	words := []string{}
	if id != "" {
		words = append(words, "run "+id)
	}
	if !o.At.IsZero() {
		words = append(words, "at "+FormatTime(o.At))
	}
	if o.Unique != "" {
		words = append(words, "unique "+o.Unique)
	}
	if n := len(o.Payload); n > 0 {
		words = append(words, fmt.Sprintf("payload of %d bytes", n))
	}
	return strings.Join(words, ", ")
}
