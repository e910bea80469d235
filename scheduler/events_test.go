package scheduler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Without hooks the engine pays nothing for them.
func TestEventsCostNothing(t *testing.T) {
	for name, e := range map[string]*events{
		"no events":     nil,
		"no hooks":      newEvents(nil, "a", nil, slog.Default()),
		"hooks are nil": newEvents(&Hooks{}, "a", nil, slog.Default()),
	} {
		if n := testing.AllocsPerRun(100, func() {
			e.due("job", 1)
			e.claimed(ledger.Lease{})
			e.started(ledger.Lease{}, time.Time{})
			e.leaseLost(ledger.Lease{}, time.Time{})
			e.settled(ledger.Lease{}, ledger.Report{}, true)
			e.missed("job", ledger.Pass{})
			e.superseded("job", "why")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
