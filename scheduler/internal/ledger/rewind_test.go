package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestRewind(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		rewind := func(from, to int64, want Status, refused error) {
			t.Helper()
			got, err := r.led.Rewind(t.Context(), r.now, Rewind{Job: "a", Digest: "d-second", From: noon + from*1000, To: noon + to*1000})
			if got != want || !errors.Is(err, refused) {
				t.Fatalf("from %d to %d: %s, %v, want %s, %v", from, to, got, err, want, refused)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		for s := int64(1); s <= 5; s++ {
			r.runOne(t, "a", s)
		}
		rewind(5, 2, Elsewhere, nil)
		rewind(6, 6, "", ErrRefused) // it stands there
		rewind(6, 7, "", ErrRefused)
		rewind(6, 0, "", ErrRefused) // before the beginning
		if _, err := r.led.Rewind(t.Context(), r.now+1001, Rewind{Job: "a", Digest: "d-second", From: noon + 6000, To: noon + 1000}); !errors.Is(err, ErrClock) {
			t.Errorf("off by more than a second: %v", err)
		}
		if got := must(r.led.Rewind(t.Context(), r.now, Rewind{Job: "a", Digest: "d-other", From: noon + 6000, To: noon + 1000})); got != Elsewhere {
			t.Errorf("another definition: %s", got)
		}
		if _, err := r.led.Rewind(t.Context(), r.now, Rewind{Job: "nobody", To: 1}); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		rewind(6, 3, Rewound, nil)
		rewind(6, 3, Elsewhere, nil) // repeated
		r.sound(t)
		if e := r.entry(t, "a"); e.Cursor != noon+3000 || e.ReattemptUntil != noon+6000 || e.Reattempt != 2 {
			t.Errorf("the entry is %+v", e)
		}
		if found := must(r.led.NewScanner().Scan(t.Context(), noon+3001, 0)).Late; len(found) != 1 || found[0].Cursor != noon+3000 {
			t.Errorf("due: %+v", found)
		}
		r.want(t, Stale, tickClaim("a", "a-3", 3)) // a copy of the claim from before: its run ended
		for s := int64(3); s <= 4; s++ {
			a := r.want(t, Granted, tickClaim("a", NextAttemptID(string(rune('p'+s))), s))
			if again := r.want(t, Granted, tickClaim("a", NextAttemptID(string(rune('p'+s))), s)); a.Run.Attempt != 2 || again.Run.Attempt != 2 {
				t.Errorf("tick %d: attempts %d and %d", s, a.Run.Attempt, again.Run.Attempt)
			}
			rewind(s+1, 1, "", ErrRefused) // a run holds the job
			r.settle(t, Settled, "a", NextAttemptID(string(rune('p'+s))), jobs.OutcomeFailed)
		}
		rewind(5, 2, Rewound, nil) // further, before it has come to where it was
		if e := r.entry(t, "a"); e.ReattemptUntil != noon+6000 || e.Reattempt != 3 {
			t.Errorf("the entry is %+v", e)
		}
		for s, want := range map[int64]int{2: 3} {
			if a := r.want(t, Granted, tickClaim("a", "r2", s)); a.Run.Attempt != want {
				t.Errorf("tick %d: attempt %d", s, a.Run.Attempt)
			}
		}
		r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded)
		if a := r.want(t, Granted, passing("a", "r6", 6, late(3, 5))); a.Run.Attempt != 1 || r.entry(t, "a").ReattemptUntil != 0 {
			t.Errorf("behind it: attempt %d, %+v", a.Run.Attempt, r.entry(t, "a"))
		}
		r.settle(t, Settled, "a", "r6", jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "succeeded 2", "succeeded 3", "succeeded 4", "succeeded 5", "superseded 3-0 x0 rewound", "failed 3 #2", "failed 4 #2",
			"superseded 2-0 x0 rewound", "succeeded 2 #3", "missed 3-5 x3 late", "succeeded 6")
		r.sound(t)
	})
}

// A run in flight, or pending again, may need an attempt's number; an operator's run does not.
func TestRewindWaitsForWhatIsInFlight(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		back := func() error {
			_, err := r.led.Rewind(t.Context(), r.now, Rewind{Job: "a", Digest: "d-second", From: noon + 3000, To: noon + 1000})
			return err
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.want(t, Granted, with(jobs.OverlapAllow, attempts(2, tickClaim("a", "r2", 2)))) // holds nothing
		if err := back(); !errors.Is(err, ErrRefused) {
			t.Errorf("while it runs: %v", err)
		}
		r.reap(t, "a", "r2")
		if err := back(); !errors.Is(err, ErrRefused) {
			t.Errorf("while another attempt waits: %v", err)
		}
		must(r.led.Cancel(t.Context(), "a", NextAttemptID("r2"), "ann", ""))
		fresh := must(r.led.Rerun(t.Context(), "a", "a-1"))
		if err := back(); !errors.Is(err, ErrRefused) {
			t.Errorf("while an operator's waits: %v", err)
		}
		must(r.led.Cancel(t.Context(), "a", fresh, "ann", ""))
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		if err := back(); err != nil {
			t.Errorf("while a run by hand waits: %v", err)
		}
		if a := r.want(t, Granted, tickClaim("a", "r1", 1)); a.Run.Attempt != 3 {
			t.Errorf("attempt %d, after one that was cancelled before it ran", a.Run.Attempt)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, Opened, with(jobs.OverlapAllow, sharded(2, tickClaim("a", "open", 2))))
		for i := range 2 {
			if err := back(); !errors.Is(err, ErrRefused) {
				t.Errorf("while a tick is open, before shard %d: %v", i, err)
			}
			r.complete(t, jobs.OutcomeSucceeded, with(jobs.OverlapAllow, shardClaim("a", "open", i)))
		}
		if err := back(); err != nil {
			t.Errorf("when the tick has closed: %v", err)
		}
		r.sound(t)
	})
}

// A schedule that has no more ticks can be set back as well, and history that was trimmed is no
// place to go.
func TestRewindOfAnEndedSchedule(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		for s := int64(1); s <= 33; s++ {
			c := tickClaim("a", NextAttemptID(time.Duration(s).String()), s)
			if s == 33 {
				c.Next = 0
			}
			r.complete(t, jobs.OutcomeSucceeded, c)
		}
		base := r.entry(t, "a").Base
		if base <= noon+1000 {
			t.Fatal("nothing was trimmed")
		}
		to := Rewind{Job: "a", Digest: "d-second", To: base - 1000}
		if _, err := r.led.Rewind(t.Context(), r.now, to); !errors.Is(err, ErrRefused) {
			t.Errorf("to before the base: %v", err)
		}
		to.To = noon + 32_000
		if got := must(r.led.Rewind(t.Context(), r.now, to)); got != Rewound {
			t.Fatalf("%s", got)
		}
		if e := r.entry(t, "a"); e.ReattemptUntil != noon+33_001 || e.Reattempt != 2 {
			t.Errorf("the entry is %+v", e)
		}
		r.sound(t)
	})
}

// A job that followed another one gets a schedule: its ticks from then on can be run again, and
// none before.
func TestRewindOfAJobThatFollowed(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		must(r.led.Define(ctx, r.now, []Definition{{Job: "a", Digest: "d-after", Text: []byte("{}")}}))
		got := must(r.led.Define(ctx, r.now, []Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), WasDigest: "d-after", Cursor: noon + 1000}}))
		if got[0].Status != "replaced" {
			t.Fatalf("%+v", got)
		}
		r.pass(t, time.Minute)
		for s := int64(1); s <= 3; s++ {
			r.runOne(t, "a", s)
		}
		to := Rewind{Job: "a", Digest: "d-second", From: noon + 4000}
		if _, err := r.led.Rewind(ctx, r.now, to); !errors.Is(err, ErrRefused) {
			t.Errorf("to before its schedule: %v", err)
		}
		to.To = noon + 1000
		if got := must(r.led.Rewind(ctx, r.now, to)); got != Rewound {
			t.Errorf("to the first tick of its schedule: %s", got)
		}
		if a := r.want(t, Granted, tickClaim("a", "r1", 1)); a.Run.Attempt != 2 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		r.sound(t)
	})
}

// A job that was created by a clock which was taken back begins in the future. It can be set back
// to where it would have begun.
func TestRewindBeforeABeginningAhead(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), Cursor: noon + 3_600_000}}))
		back := Rewind{Job: "a", Digest: "d-second", From: noon + 3_600_000, To: noon - 26*365*86_400_000}
		if _, err := r.led.Rewind(t.Context(), r.now, back); !errors.Is(err, ErrRefused) {
			t.Errorf("to 26 years ago: %v", err)
		}
		back.To = noon + 1000
		if got := must(r.led.Rewind(t.Context(), r.now, back)); got != Rewound {
			t.Fatal(got)
		}
		r.pass(t, time.Second)
		r.runOne(t, "a", 1)
		r.sound(t)
	})
}
