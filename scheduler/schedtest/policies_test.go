package schedtest

import "testing"

// TestPolicies plays random plans with all policies, faults and operators.
func TestPolicies(t *testing.T) {
	s := &suite{name: "TestPolicies", plan: policiesPlan, seeds: 12, enough: 300, shows: policiesShow}
	t.Cleanup(func() { // after the seeds, which play in parallel
		if n := strayCheckpoints.Load(); n > 0 {
			t.Errorf("%d times a run found what another tick or shard had saved", n)
		}
	})
	s.run(t)
}

// policiesShow are the events that enough seeds must show.
var policiesShow = []string{
	"recorded: missed (late)", "recorded: missed (catch_up_max)", "recorded: missed (start_within)", "recorded: skipped (overlap)",
	"recorded: skipped (upstream)", "recorded: paused (paused)", "recorded: superseded (definition replaced)", "recorded: superseded (rewound)",
	"recorded: cancelled (replaced)", "recorded: cancelled (draining)", "recorded: cancelled (cancelled by ops: enough)", "recorded: timed_out",
	"recorded: failed", "recorded: lost", "recorded: abandoned (lease lapsed)", "recorded: succeeded", "try above 1", "attempt above 1",
	"run by after", "run by rerun", "run by catch_up", "run by manual", "rerun: done", "unique: the same run", "cancel: told", "cancel: cancelled",
	"rewind: done", "resume: done", "run handed back", "tick of shards", "run by backfill", "backfill: done", "shard taken over", "partial failure",
}
