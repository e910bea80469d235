package lane

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// After a loss in the middle of a deploy, nodes of the old version register their definition first. The run of a node of the new version is
// restored by it, and its tick is not granted again; a tick that the old schedule does not have cannot be.
func TestRunOfAnotherDefinition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schedule string // of the stored definition
		want     ledger.Status
	}{
		"the same schedule":         {"@every 3s", ledger.Restored},
		"one that has the tick too": {"@every 1s", ledger.Restored},
		"one that does not have it": {"0 0 1 1 *", ledger.OtherDef},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, l, _ := fresh(t, func(*ledger.Sample) {})
			now, err := l.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.l.Clock = NewClock(time.Now, time.Minute)
			f.l.Clock.add(time.Now(), time.Now(), now, "server")
			tick := now.Truncate(3 * time.Second).UnixMilli()
			stored := jobs.Job{Name: "a", Schedule: c.schedule, Timeout: time.Hour}.Definition()
			text, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			defined, err := l.Define(t.Context(), now.UnixMilli(), []ledger.Definition{{Job: "a", Digest: stored.Digest(), Text: text, Cursor: tick}})
			if err != nil || defined[0].Word != "created" {
				t.Fatal(defined, err)
			}
			own := jobs.Job{Name: "a", Schedule: "@every 3s"}
			schedule, err := own.ParsedSchedule()
			if err != nil {
				t.Fatal(err)
			}
			claim := ledger.Claim{Job: "a", Run: "r1", Tick: tick, Next: tick + 3000, TTL: 15 * time.Second, Trigger: jobs.TriggerSchedule}
			granted := claim.Lease(ledger.Answer{Token: 1, Run: ledger.Lease{Attempt: 1}}, ledger.Claimer{ID: "n1", Name: "n1"}, tick)
			run := ownRun{grant: work.Grant{Job: &work.Job{Job: own, Schedule: schedule, Digest: own.Definition().Digest()}, Lease: granted}}
			answers, err := f.assertBatch(t.Context(), l.At(f.epochs[0].ID()), []ownRun{run}, false)
			if err != nil || answers[0].Word != c.want {
				t.Fatalf("%+v, %v; want %s", answers, err, c.want)
			}
			entries, err := l.Named(t.Context(), []string{"a"})
			if err != nil {
				t.Fatal(err)
			}
			if restored := c.want == ledger.Restored; entries[0].Cursor > tick != restored {
				t.Errorf("the cursor is %d, and the tick %d", entries[0].Cursor, tick)
			}
		})
	}
}
