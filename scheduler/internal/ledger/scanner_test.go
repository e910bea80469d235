package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// 200 jobs are overdue, 200 leases lapsed and 200 runs pend, and all of them stay: within four
// looks a sweep sees all of each, and then begins again.
func TestLookPassesOnToTheNext(t *testing.T) {
	const n = 200
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		var claims []claim.Claim
		for i := range n {
			job := fmt.Sprintf("job-%03d", i)
			r.create(t, job)
			must(operate.Trigger(t.Context(), r.led, job, operate.TriggerRequest{Run: fmt.Sprint("trigger-", i)}))
			claims = append(claims, tickClaim(job, fmt.Sprint("run-", i), 1))
		}
		r.pass(t, time.Minute)
		for batch := range slices.Chunk(claims, ledger.BatchMax) {
			must(claim.Send(t.Context(), r.led, node, r.now, batch))
		}
		gaze := query.NewScanner(r.led)
		if f := must(gaze.Scan(t.Context(), noon+2000, 1000)); len(f.Late)+len(f.Lapsed) != 0 {
			t.Fatalf("found something before its time: %+v", f)
		}
		r.pass(t, ttl+time.Millisecond)
		for round := range 3 {
			late, lapsed, pending := map[string]bool{}, map[string]bool{}, map[string]bool{}
			for range 4 {
				f := must(gaze.Scan(t.Context(), r.now, 0))
				for _, l := range f.Late {
					late[l.Job] = l.Cursor == noon+2000
				}
				for _, l := range f.Lapsed {
					lapsed[l.ID] = !l.Pending()
				}
				for _, l := range f.Pending {
					pending[l.ID] = l.Pending()
				}
			}
			for what, seen := range map[string]map[string]bool{"late": late, "lapsed": lapsed, "pending": pending} {
				if len(seen) != n || slices.Contains(slices.Collect(maps.Values(seen)), false) {
					t.Fatalf("round %d: 4 looks found %d %s, want %d", round, len(seen), what, n)
				}
			}
		}
	})
}

// TestPostpone: a job without a node is looked at again later, and at once when a node holds it
// again.
func TestPostpone(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		due := func(what string, want int64) {
			t.Helper()
			if got := int64(r.client.ZScore(t.Context(), r.led.Keys[0].Due, "a").Val()); got != want {
				t.Errorf("%s: due at %d, want %d", what, got-noon, want-noon)
			}
			if found := must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Late; (len(found) == 1) != (want <= r.now) {
				t.Errorf("%s: a look finds %+v", what, found)
			}
		}
		postpone := func(job string, cursor, until int64) {
			t.Helper()
			if err := claim.Postpone(t.Context(), r.led, query.Late{Job: job, Cursor: cursor}, until); err != nil {
				t.Fatal(err)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		postpone("nobody", 1, r.now)
		postpone("a", noon+2000, r.now+9000)
		due("not what stands there", noon+1000)
		postpone("a", noon+1000, r.now+10_000)
		postpone("a", r.now+10_000, r.now+20_000)
		due("put off twice", r.now+20_000)
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second"}}))
		due("somebody holds it", noon+1000)
		postpone("a", noon+1000, r.now+10_000)
		r.runOne(t, "a", 1)
		due("it ran", noon+2000)
	})
}
