package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// defined registers one definition and compares the answer's word; a promotion's when epoch is not negative.
func (r *rig) defined(t *testing.T, want string, epoch int64, d Definition) Defined {
	t.Helper()
	define := r.led.Define
	if epoch >= 0 {
		define = r.led.bySwitch(epoch)
	}
	before := dump(t, r.client)
	got := must(define(t.Context(), r.now, []Definition{d}))[0]
	if got.Word != want {
		t.Fatalf("%+v is answered %+v, want %s", d, got, want)
	}
	if wrong := differences(before, dump(t, r.client)); (want == "standby" || want == "differs") && len(wrong) > 0 {
		t.Fatalf("answered %s it has changed %s", want, strings.Join(wrong, "\n"))
	}
	return got
}

// TestOnlyTheGatesGenerationMakesNewJobs: others wait, and a promotion may, if no later one came here.
func TestOnlyTheGatesGenerationMakesNewJobs(t *testing.T) {
	for stored, c := range map[string]struct {
		epoch       int64
		own, others string
	}{"": {0, "", "neo"}, "1|3|neo|open||": {3, "neo", ""}, "1|3||open||": {3, "", "neo"}} {
		t.Run(stored, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.gate(t, stored)
				d := Definition{Job: "a", Digest: "d-own", Text: []byte("{}"), Cursor: noon + 1000, Generation: c.own}
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
					r.defined(t, "standby", epoch, d) // nor is it said what is stored
				}
				r.defined(t, "created", c.epoch, other)
				r.defined(t, "same", c.epoch, other)
				r.defined(t, "same", -1, other) // it is there now, whoever's it is
				r.pass(t, time.Minute)
				r.want(t, Superseded, tickClaim("b", "r1", 1))
				claim := tickClaim("b", "r2", 1)
				claim.Digest = "d-other"
				r.want(t, Granted, claim)
				r.sound(t)
			})
		})
	}
}

// TestGenerationsHaveTheirOwnDigests: equal settings are two definitions, and whoever holds the other one is superseded.
func TestGenerationsHaveTheirOwnDigests(t *testing.T) {
	job := jobs.Job{Name: "a", Schedule: "@every 1s", Shards: 1, TTL: ttl}
	defs := map[string]Definition{}
	for _, g := range []string{"", "blue", "neo"} {
		settings := job.Definition()
		settings.Generation = g
		defs[g] = Definition{Job: "a", Digest: settings.Digest(), Text: must(json.Marshal(settings)), Generation: g, Cursor: noon + 1000}
	}
	if defs[""].Digest == defs["neo"].Digest || defs["neo"].Digest == defs["blue"].Digest || defs["blue"].Digest == defs[""].Digest {
		t.Fatalf("two generations have one digest: %+v", defs)
	}
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.gate(t, "1|0|blue|open||")
		claim := func(g, run string, second int64, want Verdict) Answer {
			t.Helper()
			c := tickClaim("a", run, second)
			c.Digest = defs[g].Digest
			return r.want(t, want, c)
		}
		r.defined(t, "created", -1, defs["blue"])
		r.pass(t, time.Minute)
		for _, g := range []string{"", "neo"} {
			if a := claim(g, "r0", 1, Superseded); a.Detail != defs["blue"].Digest {
				t.Errorf("%q is told of %s", g, a.Detail)
			}
			r.defined(t, "differs", -1, defs[g]) // it may only create
		}
		claim("blue", "r1", 1, Granted)
		r.gate(t, "1|1|neo|open||") // as a promotion does, job by job
		next := defs["neo"]
		next.WasDigest, next.Same, next.Old = defs["blue"].Digest, true, must(job.ParsedSchedule()).String()
		r.defined(t, "replaced", 1, next)
		claim("blue", "r1", 1, Granted) // its run goes on, and its reply may have been lost
		claim("blue", "r2", 2, Superseded)
		claim("neo", "r3", 2, Held)
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		claim("neo", "r3", 2, Granted)
		r.settle(t, Settled, "a", "r3", jobs.OutcomeSucceeded)
		r.tale(t, "a", "superseded 2-0 x0 definition replaced "+next.Old, "succeeded 1", "succeeded 2")
		r.sound(t)
	})
}

// TestSameKeepsTheCursor: where only other settings change, no tick is given up, due ones neither, and nothing is asked of the
// cursor; another definition than the one expected is not replaced.
func TestSameKeepsTheCursor(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 10*time.Second)
		r.runOne(t, "a", 1) // 2 to 10 are due
		d := Definition{Job: "a", Digest: "d-2", Revision: "2", Text: []byte("{2}"), Same: true, WasDigest: "d-other",
			Cursor: noon + 11_000, WasCursor: noon + 7000, Until: noon + 9000, Count: 8, Upcoming: noon + 500, Old: "x"}
		if got := r.defined(t, "differs", -1, d); got.Digest != "d-second" || got.Cursor != noon+2000 || string(got.Text) != "{}" {
			t.Errorf("where another one is stored: %+v", got)
		}
		d.WasDigest = ""
		r.defined(t, "differs", -1, d)
		d.WasDigest = "d-second"
		was := r.entry(t, "a")
		got := r.defined(t, "replaced", -1, d)
		if got.Cursor != noon+2000 || got.Last != noon+1000 || got.Digest != "d-2" || got.Revision != "2" {
			t.Errorf("replaced: %+v", got)
		}
		if was.Digest, was.Revision = "d-2", "2"; fmt.Sprint(r.entry(t, "a")) != fmt.Sprint(was) {
			t.Errorf("the entry is %+v, want %+v", r.entry(t, "a"), was)
		}
		if text := must(r.led.Job(t.Context(), "a")).Definition; string(text) != "{2}" {
			t.Errorf("stored is %s", text)
		}
		r.want(t, Superseded, tickClaim("a", "old", 2))
		for s := int64(2); s <= 10; s++ {
			c := tickClaim("a", fmt.Sprint("r", s), s)
			c.Digest = "d-2"
			r.want(t, Granted, c)
			r.settle(t, Settled, "a", c.Run, jobs.OutcomeSucceeded)
		}
		r.tale(t, "a", "succeeded 1", "superseded 2-0 x0 definition replaced x", "succeeded 2", "succeeded 3", "succeeded 4", "succeeded 5", "succeeded 6", "succeeded 7",
			"succeeded 8", "succeeded 9", "succeeded 10")
		if n := r.entry(t, "a").Counts[jobs.OutcomeSuperseded]; n != 0 {
			t.Errorf("%d ticks were given up", n)
		}
		r.sound(t)
	})
}

// TestDelayedCopiesOfDefinitions: a copy that arrives after a rollback. One with the same schedule may be carried out again, and costs
// no tick whatever has run meanwhile; any other finds that the cursor stands elsewhere.
func TestDelayedCopiesOfDefinitions(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 5*time.Second)
		to := Definition{Job: "a", Digest: "d-2", Text: []byte("{2}"), WasDigest: "d-second", Same: true}
		back := Definition{Job: "a", Digest: "d-second", Text: []byte("{}"), WasDigest: "d-2", Same: true}
		r.defined(t, "replaced", -1, to)
		r.defined(t, "same", -1, to)
		r.defined(t, "replaced", -1, back)
		r.runOne(t, "a", 1)
		for range 2 {
			r.defined(t, "replaced", -1, to) // the copy
			if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Digest != "d-2" {
				t.Errorf("the entry is %+v", e)
			}
			r.defined(t, "replaced", -1, back)
		}
		r.runOne(t, "a", 2)
		changed := "superseded %d-0 x0 definition replaced" // each leaves its row, and gives up no tick
		tale := append(slices.Repeat([]string{fmt.Sprintf(changed, 1)}, 2), "succeeded 1")
		tale = append(append(tale, slices.Repeat([]string{fmt.Sprintf(changed, 2)}, 4)...), "succeeded 2")
		r.tale(t, "a", tale...)

		daily := Definition{Job: "a", Digest: "d-day", Text: []byte("{3}"), WasDigest: "d-second", WasCursor: noon + 3000, Until: noon + 5000, Count: 3,
			Upcoming: noon + 6000, Cursor: noon + 86_400_000}
		r.defined(t, "replaced", -1, daily)
		r.defined(t, "differs", -1, to) // another one is stored
		again := Definition{Job: "a", Digest: "d-second", Text: []byte("{}"), WasDigest: "d-day", WasCursor: daily.Cursor, Cursor: noon + 6000}
		r.defined(t, "replaced", -1, again)
		if got := r.defined(t, "differs", -1, daily); got.Cursor != noon+6000 || got.Last != noon+5000 {
			t.Errorf("the copy of the other one: %+v", got)
		}
		was := r.now
		r.pass(t, 1500*time.Millisecond)
		if _, err := r.led.Define(t.Context(), was, []Definition{to}); !errors.Is(err, ErrClock) {
			t.Errorf("a copy as late as that: %v", err)
		}
		r.runOne(t, "a", 6)
		r.tale(t, "a", append(tale, "superseded 3-5 x3 definition replaced", "superseded 86400-0 x0 definition replaced", "succeeded 6")...)
		r.sound(t)
	})
}

// TestFormer: which definitions were replaced is remembered, newest first, eight of them, but not of what came back; it
// goes with the job.
func TestFormer(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "other")
		stored := "d-second"
		turn := func(job, digest string) {
			t.Helper()
			r.defined(t, "replaced", -1, Definition{Job: job, Digest: digest, Text: []byte("{}"), WasDigest: stored, Same: true})
			stored = digest
		}
		former := func(job string, want ...string) {
			t.Helper()
			got := r.defined(t, "differs", -1, Definition{Job: job, Digest: "d-asking", Text: []byte("{}")}).Former
			if !slices.Equal(got, want) {
				t.Fatalf("former of %s: %q, want %q", job, got, want)
			}
		}
		former("a")
		for _, d := range []string{"d-1", "d-2", "d-3"} {
			turn("a", d)
		}
		if got := r.defined(t, "same", -1, Definition{Job: "a", Digest: "d-3", Text: []byte("{}")}); len(got.Former) > 0 {
			t.Errorf("who holds it is told of %q", got.Former)
		}
		former("a", "d-2", "d-1", "d-second")
		turn("a", "d-1") // a rollback
		former("a", "d-3", "d-2", "d-second")
		turn("a", "d-3") // and forward again
		former("a", "d-1", "d-2", "d-second")
		for i := range 7 {
			turn("a", fmt.Sprint("e-", i))
		}
		former("a", "e-5", "e-4", "e-3", "e-2", "e-1", "e-0", "d-3", "d-1")
		// A replacement that moves the cursor is remembered as well.
		r.defined(t, "replaced", -1, Definition{Job: "a", Digest: "e-7", Text: []byte("{}"), WasDigest: "e-6", WasCursor: noon + 1000, Upcoming: noon + 1000, Cursor: noon + 2000})
		former("a", "e-6", "e-5", "e-4", "e-3", "e-2", "e-1", "e-0", "d-3")
		former("other")
		if err := r.led.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		r.create(t, "a")
		former("a")
		r.sound(t)
	})
}
