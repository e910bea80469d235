package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestTriggerIsOneRun: a repeated request is one run, whether it waits, runs, was handed back or
// has ended.
func TestTriggerIsOneRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		payload := []byte("{\"a\":\"b|c\"}\n\x00\xff")
		trigger := func(when string, pending int) {
			t.Helper()
			must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t1", Payload: payload}))
			if n := len(keepIf(must(r.led.InFlight(t.Context(), "a")), Run.Pending)); n != pending {
				t.Fatalf("%s: %d pending runs, want %d", when, n, pending)
			}
		}
		trigger("asked for", 1)
		trigger("asked for again", 1)
		r.want(t, Granted, tickClaim("a", "r1", 1)) // a pending trigger does not hold the job
		r.want(t, JobBusy, pendingClaim("a", "t1"))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		if a := r.want(t, Granted, pendingClaim("a", "t1")); string(a.Run.Payload) != string(payload) || a.Run.Trigger != "manual" || a.Run.Prev != 0 {
			t.Errorf("granted %+v", a)
		}
		trigger("running", 0)
		f1 := NextAttemptID("t1")
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "t1"}}))
		trigger("handed back", 1)
		r.want(t, Granted, pendingClaim("a", f1))
		trigger("running under another id", 0)
		r.settle(t, Settled, "a", f1, jobs.OutcomeSucceeded)
		trigger("ended", 0)
		r.settle(t, NoSuchRun, "a", "t1", jobs.OutcomeFailed) // burnt, although its request is in the books
		r.sound(t)
		for _, c := range []struct {
			job  string
			size int
			want error
		}{{"nobody", 0, ErrUnknownJob}, {"a", PayloadMax + 1, ErrRefused}, {"a", PayloadMax, nil}} {
			if _, err := r.led.Trigger(t.Context(), c.job, Trigger{Run: "t3", Payload: make([]byte, c.size)}); !errors.Is(err, c.want) {
				t.Errorf("%s with %d bytes: %v, want %v", c.job, c.size, err, c.want)
			}
		}
	})
}

// TestTriggerLargePayload: large payloads are refused while many runs are due, for sweeps read them
// all. Delayed ones are not read.
func TestTriggerLargePayload(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		tomorrow := r.now + 24*time.Hour.Milliseconds()
		ask := func(run string, size int, at int64) error {
			_, err := r.led.Trigger(t.Context(), "a", Trigger{Run: run, Payload: make([]byte, size), At: at})
			return err
		}
		taken := func(n int, run string, size int, at int64) {
			t.Helper()
			for i := range n {
				if err := ask(fmt.Sprint(run, i), size, at); err != nil {
					t.Fatalf("%s %d: %v", run, i, err)
				}
			}
		}
		taken(256, "delayed", 1024, tomorrow)
		taken(256, "due", 2048, 0)
		for _, at := range []int64{0, tomorrow} {
			if err := ask("large", 1025, at); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "1025 bytes") || !strings.Contains(err.Error(), "ask again") {
				t.Errorf("beside 256 that are due: %v", err)
			}
		}
		taken(1, "due", 2048, 0) // repeated
		taken(1, "small", 1024, 0)
	})
}

// TestTriggerOncePerKey: every request with a used key is answered with that run, also when its row
// is gone, until the time is over for which rows are kept.
func TestTriggerOncePerKey(t *testing.T) {
	onBoth(t, Config{Partitions: 1, Keep: 16, KeepFor: time.Hour}, func(t *testing.T, r *rig) {
		key := Trigger{Run: "ignored", Unique: "order|7"}
		ask := func(job string) string { return must(r.led.Trigger(t.Context(), job, key)) }
		r.create(t, "a")
		r.create(t, "b")
		run := ask("a")
		if run != UniqueRun("a", "order|7") || ask("a") != run || ask("b") == run {
			t.Fatalf("runs %s, %s, %s", run, ask("a"), ask("b"))
		}
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", run))
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		for _, later := range []time.Duration{0, 59*time.Minute - time.Millisecond, time.Millisecond} {
			r.pass(t, later)
			if ask("a"); (r.open(t, "a") != nil) != (later == time.Millisecond) {
				t.Fatalf("in flight %s later: %+v", later, r.open(t, "a"))
			}
		}
		key.At, key.Unique = r.now+10*3600_000, "later" // counts from its own time
		ask("b")
		if until := r.client.ZScore(t.Context(), r.led.keys[0].unique, UniqueRun("b", "later")).Val(); int64(until) != r.now+11*3600_000 {
			t.Errorf("remembered until %d", int64(until)-r.now)
		}
	})
}

func TestTriggersAreBounded(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	r.create(t, "a")
	r.client.ZAdd(t.Context(), r.led.keys[0].unique, members(uniqueMax-2)...)
	for i, want := range []error{nil, nil, ErrRefused} {
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Unique: fmt.Sprint(i)}); !errors.Is(err, want) {
			t.Errorf("key %d: %v", i, err)
		}
	}
	r.client.ZAdd(t.Context(), r.led.keys[0].pending, members(pendingMax-3)...)
	for i, want := range []error{nil, ErrRefused} {
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: fmt.Sprint("t", i)}); !errors.Is(err, want) {
			t.Errorf("run %d of those that may wait: %v", pendingMax+i, err)
		}
	}
}
