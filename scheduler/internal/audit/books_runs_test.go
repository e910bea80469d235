package audit

import (
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// A start before the tick is a fault, unless Redis' clock was set back between grant and end.
func TestStartedEarly(t *testing.T) {
	const tick = 1_800_000_000_000 // ms
	for _, c := range []struct {
		what           string
		granted, start int64 // ms from the tick on
		want           bool
	}{
		{"on time", 0, 1, false},
		{"claimed ahead", -400, -399, false},
		{"granted and started long before", -90_000, -90_000, true},
		{"set back by 90 s during the run", 400, -89_600, false},
	} {
		row := ledger.Row{Run: "r", Tick: tick, Token: (tick + c.granted) * 1000, Started: tick + c.start}
		if got := startedEarly(row); got != c.want {
			t.Errorf("%s: early is %v", c.what, got)
		}
	}
}
