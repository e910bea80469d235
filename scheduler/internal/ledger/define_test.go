package ledger_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

func TestDefine(t *testing.T) {
	day := (24 * time.Hour).Milliseconds()
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		defineJob := func(d define.Definition) define.Defined {
			t.Helper()
			return must(define.Define(t.Context(), r.led, r.now, []define.Definition{d}))[0]
		}
		same := func(got, want define.Defined) {
			t.Helper()
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
		}
		none := []byte{}
		second := define.Definition{Job: "a", Digest: "d-second", Revision: "2|b\nc", Text: []byte("{1}"), Cursor: noon + 1000}
		same(defineJob(second), define.Defined{Status: "created", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Cursor = noon + 9000
		same(defineJob(second), define.Defined{Status: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Revision = "1"
		same(defineJob(second), define.Defined{Status: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "2/b c", Text: none})
		second.Revision = "3"
		same(defineJob(second), define.Defined{Status: "same", Cursor: noon + 1000, Digest: "d-second", Revision: "3", Text: none})

		r.pass(t, 10*time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		stored := define.Defined{Status: "differs", Cursor: noon + 2000, Digest: "d-second", Revision: "3", Text: []byte("{1}"), Last: noon + 1000}
		daily := define.Definition{Job: "a", Digest: "d-day", Revision: "4", Text: []byte("{2}"), Cursor: noon + day}
		same(defineJob(daily), stored) // only creates
		daily.WasDigest, daily.WasCursor = "d-second", noon+1000
		same(defineJob(daily), stored) // stands elsewhere
		daily.WasDigest, daily.WasCursor = "d-other", noon+2000
		same(defineJob(daily), stored)
		daily.WasDigest, daily.Cursor = "d-second", r.now
		same(defineJob(daily), stored) // not after now
		daily.Cursor, daily.Upcoming = noon+day, r.now
		same(defineJob(daily), stored) // the old schedule has a tick now, which is not counted
		daily.Upcoming = noon + 11_000
		// Ticks 2 to 10 of the old schedule will not be run any more.
		daily.Cursor, daily.Until, daily.Count = noon+day, noon+10_000, 9
		same(defineJob(daily), define.Defined{Status: "replaced", Cursor: noon + day, Digest: "d-day", Revision: "4", Text: none, Last: noon + 10_000})
		same(defineJob(daily), define.Defined{Status: "same", Cursor: noon + day, Digest: "d-day", Revision: "4", Text: none, Last: noon + 10_000})
		r.sound(t)

		// Back to the first, whose next tick lies before the cursor; nothing was due.
		r.pass(t, 5*time.Second)
		back := define.Definition{Job: "a", Digest: "d-second", Revision: "3", Text: []byte("{1}"), Cursor: noon + 16_000, WasDigest: "d-day", WasCursor: noon + day, Until: noon + 10_000}
		same(defineJob(back), define.Defined{Status: "replaced", Cursor: noon + 16_000, Digest: "d-second", Revision: "3", Text: none, Last: noon + 10_000})
		r.sound(t)
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded) // in flight all the time
		r.sound(t)
		r.pass(t, 5*time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r2", 16))
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
		if text := must(query.Job(t.Context(), r.led, "a")).Definition; string(text) != "{1}" {
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
		d := define.Definition{Job: "a", Digest: "d-half", Text: []byte("{}"), Cursor: noon + 1000, WasDigest: "d-second", WasCursor: noon + 2000}
		if got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{d})); got[0].Status != "differs" || got[0].Last != noon+1000 {
			t.Errorf("the tick that ran: %+v", got)
		}
		d.Cursor = noon + 1001
		if got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{d})); got[0].Status != "replaced" {
			t.Errorf("after it: %+v", got)
		}
		r.sound(t)
	})
}

// defined registers one definition and compares the answer's word; a promotion's when epoch is not
// negative.
func (r *rig) defined(t *testing.T, want string, epoch int64, d define.Definition) define.Defined {
	t.Helper()
	before := dump(t, r.client)
	got := must(r.register(t.Context(), epoch, d))[0]
	if got.Status != want {
		t.Fatalf("%+v is answered %+v, want %s", d, got, want)
	}
	if wrong := differences(before, dump(t, r.client)); (want == "standby" || want == "differs") && len(wrong) > 0 {
		t.Fatalf("answered %s it has changed %s", want, strings.Join(wrong, "\n"))
	}
	return got
}

// TestOnlyTheGatesGenerationMakesNewJobs: other generations wait; a promotion may make jobs, unless
// a later promotion came here.
func TestOnlyTheGatesGenerationMakesNewJobs(t *testing.T) {
	for stored, c := range map[string]struct {
		epoch       int64
		own, others string
	}{"": {0, "", "neo"}, "1|3|neo|open||": {3, "neo", ""}, "1|3||open||": {3, "", "neo"}} {
		t.Run(stored, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.gate(t, stored)
				d := define.Definition{Job: "a", Digest: "d-own", Text: []byte("{}"), Cursor: noon + 1000, Generation: c.own}
				other := d
				other.Job, other.Digest, other.Generation = "b", "d-other", c.others
				if got := r.defined(t, "standby", -1, other); got.Cursor != 0 || got.Digest != "" || len(got.Text) != 0 {
					t.Errorf("on standby it is told %+v", got)
				}
				r.defined(t, "created", -1, d)
				for _, epoch := range []int64{max(0, c.epoch-1), c.epoch + 1} {
					if epoch == c.epoch {
						continue
					}
					r.defined(t, "standby", epoch, other) // not there
					turned := d
					turned.Digest, turned.WasDigest, turned.Same, turned.Generation = "d-turned", "d-own", true, c.others
					r.defined(t, "standby", epoch, turned)
					r.defined(t, "standby", epoch, d) // the stored definition is not returned either
				}
				r.defined(t, "created", c.epoch, other)
				r.defined(t, "same", c.epoch, other)
				r.defined(t, "same", -1, other) // the job exists now, of whichever generation
				r.pass(t, time.Minute)
				r.want(t, claim.Superseded, tickClaim("b", "r1", 1))
				request := tickClaim("b", "r2", 1)
				request.Digest = "d-other"
				r.want(t, claim.Granted, request)
				r.sound(t)
			})
		})
	}
}

// TestSameKeepsTheCursor: where only other settings change, no tick is given up, not even a due
// one, and the cursor is not compared; a definition other than the expected one is not replaced.
func TestSameKeepsTheCursor(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 10*time.Second)
		r.runOne(t, "a", 1) // 2 to 10 are due
		d := define.Definition{Job: "a", Digest: "d-2", Revision: "2", Text: []byte("{2}"), Same: true, WasDigest: "d-other",
			Cursor: noon + 11_000, WasCursor: noon + 7000, Until: noon + 9000, Count: 8, Upcoming: noon + 500, Old: "x"}
		r.defined(t, "differs", -1, d)
		d.WasDigest = "d-second"
		was := r.entry(t, "a")
		r.defined(t, "replaced", -1, d)
		if was.Digest, was.Revision = "d-2", "2"; fmt.Sprint(r.entry(t, "a")) != fmt.Sprint(was) {
			t.Errorf("the entry is %+v, want %+v", r.entry(t, "a"), was)
		}
		if text := must(query.Job(t.Context(), r.led, "a")).Definition; string(text) != "{2}" {
			t.Errorf("stored is %s", text)
		}
		r.want(t, claim.Superseded, tickClaim("a", "old", 2))
		c := tickClaim("a", "r2", 2)
		c.Digest = "d-2"
		r.want(t, claim.Granted, c)
		r.settle(t, settle.Settled, "a", "r2", jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "superseded 2-0 x0 definition replaced x", "succeeded 2")
		r.sound(t)
	})
}

// TestDefinitionsAreStoredOnce: a stored definition need not be sent again, any other must be; and
// the answer contains whether a definition that is not current is stored.
func TestDefinitionsAreStoredOnce(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		first := define.Definition{Job: "a", Digest: "d-1", Cursor: noon + 1000}
		r.defined(t, "missing", -1, first)
		first.Text = []byte("{1}")
		r.defined(t, "created", -1, first)
		first.Text = nil
		r.defined(t, "same", -1, first)
		second := define.Definition{Job: "a", Digest: "d-2", Same: true}
		if got := r.defined(t, "differs", -1, second); got.Stored || string(got.Text) != "{1}" {
			t.Errorf("one that is not stored: %+v", got)
		}
		second.WasDigest = "d-1"
		r.defined(t, "missing", -1, second)
		second.Text = []byte("{2}")
		r.defined(t, "replaced", -1, second)
		if got := r.defined(t, "differs", -1, define.Definition{Job: "a", Digest: "d-1"}); !got.Stored || string(got.Text) != "{2}" {
			t.Errorf("one that was current: %+v", got)
		}
		r.defined(t, "replaced", -1, define.Definition{Job: "a", Digest: "d-1", WasDigest: "d-2", Same: true})
		if text := must(query.Job(t.Context(), r.led, "a")).Definition; string(text) != "{1}" {
			t.Errorf("the way back leads to %s", text)
		}
	})
}
