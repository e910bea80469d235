package ledger

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestDefine(t *testing.T) {
	day := (24 * time.Hour).Milliseconds()
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		define := func(d Definition) Defined {
			t.Helper()
			return must(r.led.Define(t.Context(), r.now, []Definition{d}))[0]
		}
		same := func(got, want Defined) {
			t.Helper()
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
		}
		none := []byte{}
		second := Definition{Job: "a", Digest: "d-second", Revision: "2|b\nc", Text: []byte("{1}"), Cursor: noon + 1000}
		same(define(second), Defined{Word: "created", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Cursor = noon + 9000
		same(define(second), Defined{Word: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Revision = "1"
		same(define(second), Defined{Word: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Revision = "3"
		same(define(second), Defined{Word: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "3", Text: none})

		r.pass(t, 10*time.Second)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		stored := Defined{Word: "differs", Cursor: noon + 2000, Digest: "d-second", Revision: "3", Text: []byte("{1}"), Last: noon + 1000}
		daily := Definition{Job: "a", Digest: "d-day", Revision: "4", Text: []byte("{2}"), Cursor: noon + day}
		same(define(daily), stored) // only creates
		daily.WasDigest, daily.WasCursor = "d-second", noon+1000
		same(define(daily), stored) // stands elsewhere
		daily.WasDigest, daily.WasCursor = "d-other", noon+2000
		same(define(daily), stored)
		daily.WasDigest, daily.Cursor = "d-second", r.now
		same(define(daily), stored) // not after now
		daily.Cursor, daily.Upcoming = noon+day, r.now
		same(define(daily), stored) // the old schedule has a tick now, which is not counted
		daily.Upcoming = noon + 11_000
		// Ticks 2 to 10 of the old schedule will not be run any more.
		daily.Cursor, daily.Until, daily.Count = noon+day, noon+10_000, 9
		same(define(daily), Defined{Word: "replaced", Cursor: noon + day, Digest: "d-day", Revision: "4", Text: none, Last: noon + 10_000})
		same(define(daily), Defined{Word: "same", Cursor: noon + day, Digest: "d-day", Revision: "4", Text: none, Last: noon + 10_000})
		r.sound(t)

		// Back to the first, whose next tick lies before the cursor; nothing was due.
		r.pass(t, 5*time.Second)
		back := Definition{Job: "a", Digest: "d-second", Revision: "3", Text: []byte("{1}"), Cursor: noon + 16_000, WasDigest: "d-day", WasCursor: noon + day, Until: noon + 10_000}
		same(define(back), Defined{Word: "replaced", Cursor: noon + 16_000, Digest: "d-second", Revision: "3", Text: none, Last: noon + 10_000})
		r.sound(t)
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded) // ran on through all that
		r.sound(t)
		r.pass(t, 5*time.Second)
		r.want(t, Granted, tickClaim("a", "r2", 16))
		r.sound(t)
		want := []string{"superseded 2000-10000 x9", fmt.Sprintf("superseded %d-%d x0", day, -noon), "succeeded 1000-0 x0"}
		var got []string
		for _, row := range r.rows(t, "a") {
			until := row.Until - noon
			if !row.Ranged {
				until = 0
			}
			got = append(got, fmt.Sprintf("%s %d-%d x%d", row.Outcome, row.Tick-noon, until, row.Count))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("rows are %q, want %q", got, want)
		}
		if text := must(r.led.Job(t.Context(), "a")).Definition; string(text) != "{1}" {
			t.Errorf("stored is %s", text)
		}
	})
}

// The clock steps back, and a definition comes whose next tick was granted before the step.
func TestDefineNeverGoesBehindWhatRan(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.clock(t, (noon+500)*1000, "bbbbbbbbbbbb")
		d := Definition{Job: "a", Digest: "d-half", Cursor: noon + 1000, WasDigest: "d-second", WasCursor: noon + 2000}
		if got := must(r.led.Define(t.Context(), r.now, []Definition{d})); got[0].Word != "differs" || got[0].Last != noon+1000 {
			t.Errorf("the tick that ran: %+v", got)
		}
		d.Cursor = noon + 1001
		if got := must(r.led.Define(t.Context(), r.now, []Definition{d})); got[0].Word != "replaced" {
			t.Errorf("after it: %+v", got)
		}
		r.sound(t)
	})
}
