package ops

import (
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// A run that was claimed ahead starts no sooner than its tick, whether it goes on, was abandoned or
// is a tick of shards. A manual run, of an old tick or of a future one, starts when it was granted.
func TestViewOfARunThatWasClaimedAhead(t *testing.T) {
	const tick = int64(1_800_000_000_000)
	for _, c := range []struct {
		trigger jobs.Trigger
		granted int64
		started int64
	}{
		{jobs.TriggerSchedule, tick - 400, tick},
		{jobs.TriggerCatchUp, tick - 1, tick},
		{jobs.TriggerSchedule, tick + 7, tick + 7},
		{jobs.TriggerRerun, tick - 400, tick - 400},
	} {
		for name, v := range map[string]RunView{
			"going":     openView(ledger.Run{Token: 1, Tick: tick, Granted: c.granted, Trigger: c.trigger.String()}),
			"of shards": openView(ledger.Run{IsOpenTick: true, Tick: tick, Granted: c.granted, Trigger: c.trigger.String()}),
			"abandoned": rowView(ledger.Row{Token: 1, Tick: tick, Started: c.granted, At: tick + 500, Trigger: c.trigger.String()}),
		} {
			if got := v.Started.UnixMilli(); got != c.started {
				t.Errorf("%s, %s: started at %d, want %d", c.trigger, name, got-tick, c.started-tick)
			}
			if name != "of shards" && v.Lag.Milliseconds() != c.started-tick {
				t.Errorf("%s, %s: lag %d ms, want %d", c.trigger, name, v.Lag.Milliseconds(), c.started-tick)
			}
			if name == "abandoned" && v.Duration.Milliseconds() != tick+500-c.started {
				t.Errorf("%s, %s: took %d ms, want %d", c.trigger, name, v.Duration.Milliseconds(), tick+500-c.started)
			}
		}
	}
}

func TestLateReport(t *testing.T) {
	for text, want := range map[string]string{
		"lost 1795890650926": "lost at 2026-11-28T18:30:50.926Z", "succeeded": "succeeded", "succeeded x": "succeeded x", "": "",
	} {
		if got := lateReport(text); got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
}
