package ledger

import (
	"fmt"
	"testing"
	"time"
)

// 200 jobs are overdue, 200 leases lapsed and 200 runs pend, and nobody takes any of them:
// within four looks a sweep sees all of each, and then begins again.
func TestLookPassesOnToTheNext(t *testing.T) {
	const n = 200
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		job := func(i int) string { return fmt.Sprintf("job-%03d", i) }
		for i := 0; i < n; i += BatchMax {
			var defs []Definition
			for k := range BatchMax {
				defs = append(defs, Definition{Job: job(i + k), Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000})
			}
			must(r.led.Define(t.Context(), r.now, defs))
		}
		r.pass(t, time.Minute)
		for i := 0; i < n; i += BatchMax {
			var claims []Claim
			for k := range BatchMax {
				claims = append(claims, tickClaim(job(i+k), fmt.Sprint("run-", i+k), 1))
				if _, err := r.led.Trigger(t.Context(), job(i+k), Trigger{Run: fmt.Sprint("trigger-", i+k)}); err != nil {
					t.Fatal(err)
				}
			}
			must(r.led.Claim(t.Context(), node, r.now, claims))
		}
		gaze := r.led.NewGaze()
		if f := must(gaze.Look(t.Context(), noon+2000, 1000)); len(f.Late)+len(f.Lapsed)+len(f.Pending) != 0 {
			t.Fatalf("found something before its time: %+v", f)
		}
		r.pass(t, ttl+time.Millisecond)
		for round := range 3 {
			late, lapsed, pending := map[string]int{}, map[string]int{}, map[string]int{}
			for range 4 {
				f := must(gaze.Look(t.Context(), r.now, 0))
				for _, l := range f.Late {
					if late[l.Job]++; l.Cursor != noon+2000 {
						t.Errorf("%+v", l)
					}
				}
				for _, l := range f.Lapsed {
					if lapsed[l.Run]++; l.Pending() {
						t.Errorf("%+v", l)
					}
				}
				for _, l := range f.Pending {
					if pending[l.Run]++; !l.Pending() {
						t.Errorf("%+v", l)
					}
				}
			}
			if len(late) != n || len(lapsed) != n || len(pending) != n {
				t.Fatalf("round %d: 4 looks found %d late, %d lapsed, %d pending, want %d each", round, len(late), len(lapsed), len(pending), n)
			}
		}
	})
}

// TestPostpone: a job that nobody holds is looked at again later, and at once when somebody holds it again.
func TestPostpone(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		due := func() int64 { return int64(r.client.ZScore(t.Context(), r.led.keys[0].due, "a").Val()) }
		postpone := func(cursor, until int64) {
			t.Helper()
			if err := r.led.Postpone(t.Context(), Late{Job: "a", Cursor: cursor}, until); err != nil {
				t.Fatal(err)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		seen := must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Late
		if len(seen) != 1 || seen[0].Cursor != noon+1000 {
			t.Fatalf("late: %+v", seen)
		}
		postpone(noon+2000, r.now+9000) // not what stands there
		if due() != noon+1000 {
			t.Errorf("due at %d", due()-noon)
		}
		postpone(noon+1000, r.now+10_000)
		if due() != r.now+10_000 || len(must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Late) != 0 {
			t.Errorf("due at %d", due()-noon)
		}
		postpone(r.now+10_000, r.now+20_000)
		if due() != r.now+20_000 {
			t.Errorf("due at %d", due()-noon)
		}
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-second"}}))
		if due() != noon+1000 {
			t.Errorf("somebody holds it: due at %d", due()-noon)
		}
		postpone(noon+1000, r.now+10_000)
		r.runOne(t, "a", 1)
		if due() != noon+2000 {
			t.Errorf("it ran: due at %d", due()-noon)
		}
		if err := r.led.Postpone(t.Context(), Late{Job: "nobody", Cursor: 1}, r.now); err != nil {
			t.Errorf("unknown job: %v", err)
		}
	})
}
