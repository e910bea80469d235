package audit

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// A start before its tick is explained only by a step back of Redis' clock after a grant shortly
// before the tick.
func TestSetBackSinceTheGrant(t *testing.T) {
	tick := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		what           string
		stepped        bool
		granted, start time.Duration // from the tick on
		want           bool
	}{
		{"set back since", true, -20 * time.Millisecond, -90 * time.Second, true},
		{"the clock was never set back", false, -20 * time.Millisecond, -90 * time.Second, false},
		{"not since the grant", true, -20 * time.Millisecond, -10 * time.Millisecond, false},
		{"the grant came too early itself", true, -claim.AheadMax - time.Millisecond, -90 * time.Second, false},
	} {
		x := &trial{Case: &Case{SetBack: c.stepped}, firstGrants: map[string]time.Time{"run": tick.Add(c.granted)}}
		if got := x.setBackSince(Write{Run: "run", Tick: tick, At: tick.Add(c.start)}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
		if x.setBackSince(Write{Run: "another", Tick: tick, At: tick.Add(c.start)}) {
			t.Errorf("%s: so is a run of which no grant was seen", c.what)
		}
	}
}
