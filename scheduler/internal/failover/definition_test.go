package failover

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ranAt is a run of a tick of a job, granted to a node.
func ranAt(j *work.Job, tick int64, run, node string) work.Grant {
	request := claim.Claim{Job: j.Name, Run: run, Tick: tick, Next: j.Schedule.Next(time.UnixMilli(tick)).UnixMilli(), TTL: 15 * time.Second, Trigger: jobs.TriggerSchedule}
	return work.Grant{Job: j, Lease: request.GrantedRun(claim.Answer{Token: 1, Run: ledger.Run{Attempt: 1}}, claim.Claimer{ID: node, Name: node}, tick)}
}

// After a loss in the middle of a deploy, nodes of the old version register their definition first. The run of a node of the new version is
// restored by it, and its tick is not granted again; a tick that the old schedule does not have cannot be.
func TestRunOfAnotherDefinition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schedule string // of the stored definition
		want     ledger.Status
	}{
		"the same schedule":         {"@every 3s", epoch.Restored},
		"one that has the tick too": {"@every 1s", epoch.Restored},
		"one that does not have it": {"0 0 1 1 *", epoch.OtherDef},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, same)
			tick := n.Clock.Now().Truncate(3 * time.Second).UnixMilli()
			n.define(t, jobs.Job{Name: "a", Schedule: c.schedule, Timeout: time.Hour}, tick)
			run := ownRun{grant: ranAt(jobOf(t, jobs.Job{Name: "a", Schedule: "@every 3s"}), tick, "r1", "n1")}
			answers, err := n.assertBatch(t.Context(), n.led.At(n.EpochID(0)), []ownRun{run}, false)
			if err != nil || answers[0].Status != c.want {
				t.Fatalf("%+v, %v; want %s", answers, err, c.want)
			}
			if cursor := n.cursor(t, "a"); cursor > tick != (c.want == epoch.Restored) {
				t.Errorf("the cursor is %d, and the tick %d", cursor, tick)
			}
		})
	}
}
