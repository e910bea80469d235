package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestTriggerIsOneRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		payload := []byte("{\"a\":\"b|c\"}\n\x00\xff")
		trigger := func(when string, pending int) {
			t.Helper()
			if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t1", Payload: payload}); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, l := range must(r.led.Open(t.Context(), jobNames...)) {
				if l.Pending() {
					n++
				}
			}
			if n != pending {
				t.Fatalf("%s: %d pending runs, want %d", when, n, pending)
			}
		}
		trigger("asked for", 1)
		trigger("asked for again", 1)
		r.want(t, Granted, tickClaim("a", "r1", 1)) // a pending trigger does not hold the job
		if a := r.want(t, Held, pendingClaim("a", "t1")); a.Detail != "r1" {
			t.Errorf("held by %q", a.Detail)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		if a := r.want(t, Granted, pendingClaim("a", "t1")); string(a.Run.Payload) != string(payload) || a.Run.Trigger != "manual" || a.Run.Prev != 0 {
			t.Errorf("granted %+v", a)
		}
		trigger("running", 0)
		f1 := Successor("t1")
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "t1"}}))
		trigger("handed back", 1)
		r.want(t, Granted, pendingClaim("a", f1))
		trigger("running under another id", 0)
		r.settle(t, Settled, "a", f1, jobs.OutcomeSucceeded)
		trigger("ended", 0)
		r.settle(t, NoSuchRun, "a", "t1", jobs.OutcomeFailed) // burnt, although its request is in the books
		if row := r.rows(t, "a")[1]; row.Run != f1 || row.Request != "t1" || row.Late != "" {
			t.Errorf("row is %+v", row)
		}
		r.sound(t)
		if _, err := r.led.Trigger(t.Context(), "nobody", Trigger{Run: "t2"}); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t3", Payload: make([]byte, PayloadMax+1)}); !errors.Is(err, ErrRefused) {
			t.Errorf("payload too large: %v", err)
		}
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t3", Payload: make([]byte, PayloadMax)}); err != nil {
			t.Errorf("payload just fits: %v", err)
		}
	})
}

func TestTriggerRefusesTooMany(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	r.create(t, "a")
	pipe := r.client.Pipeline()
	for i := range pendingMax {
		pipe.Do(t.Context(), "ZADD", r.led.keys[0].pending, noon, i)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

// TestTriggerLargePayload: large payloads are refused while many runs are due, for sweeps read them all. Delayed ones are not read.
func TestTriggerLargePayload(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		ask := func(run string, size int, at int64) error {
			_, err := r.led.Trigger(t.Context(), "a", Trigger{Run: run, Payload: make([]byte, size), At: at})
			return err
		}
		tomorrow := r.now + 24*time.Hour.Milliseconds()
		for i := range 256 {
			if err := ask(fmt.Sprint("d", i), 1024, tomorrow); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("beside", 2048, 0); err != nil {
			t.Errorf("beside delayed ones: %v", err)
		}
		for i := range 254 {
			if err := ask(fmt.Sprint("n", i), 2048, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("last", 2048, 0); err != nil {
			t.Errorf("beside 255 that are due: %v", err)
		}
		for _, at := range []int64{0, tomorrow} {
			err := ask("large", 1025, at)
			for _, word := range []string{"run a", "1025 bytes", "256 runs", "1024", "ask again"} {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), word) {
					t.Errorf("beside 256 that are due: %v, want ErrRefused with %q", err, word)
				}
			}
		}
		if err := ask("last", 2048, 0); err != nil {
			t.Errorf("asked for again: %v", err)
		}
		if err := ask("small", 1024, 0); err != nil {
			t.Errorf("a small one: %v", err)
		}
	})
}

// TestTriggerAtATime: it is not granted before, and its tick is that instant.
func TestTriggerAtATime(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		at := r.now + 5000
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", At: at}))
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "past", At: r.now - 5000}))
		if a := r.want(t, Granted, pendingClaim("a", "past")); a.Run.Tick != r.now-5000 {
			t.Errorf("granted %+v", a.Run)
		}
		r.settle(t, Settled, "a", "past", jobs.OutcomeSucceeded)
		r.pass(t, 4999*time.Millisecond)
		r.want(t, Early, pendingClaim("a", "t"))
		if found := must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Pending; len(found) != 0 {
			t.Errorf("a look finds %+v", found)
		}
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"})) // once asked for, it stays as it is
		r.pass(t, time.Millisecond)
		if found := must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Pending; len(found) != 1 || found[0].Granted != at {
			t.Errorf("a look finds %+v", found)
		}
		if a := r.want(t, Granted, pendingClaim("a", "t")); a.Run.Tick != at || a.Run.Trigger != "manual" {
			t.Errorf("granted %+v", a.Run)
		}
	})
}

// TestTriggerOncePerKey: whoever asks with a key that was used is answered with that run, also when
// its row is gone, until the time is over for which rows are kept.
func TestTriggerOncePerKey(t *testing.T) {
	cfg := Config{Partitions: 1, Keep: 16, KeepFor: time.Hour}
	onBoth(t, cfg, func(t *testing.T, r *rig) {
		key := Trigger{Run: "ignored", Unique: "order|7"}
		ask := func(job string) string { return must(r.led.Trigger(t.Context(), job, key)) }
		r.create(t, "a")
		r.create(t, "b")
		run := ask("a")
		if run != UniqueRun("a", "order|7") || ask("a") != run || ask("b") == run {
			t.Fatalf("runs %s, %s, %s", run, ask("a"), ask("b"))
		}
		finish := func() {
			r.want(t, Granted, pendingClaim("a", run))
			r.settle(t, Settled, "a", run, jobs.OutcomeSucceeded)
		}
		finish()
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		if rows := r.rows(t, "a"); rows[0].Request != "" {
			t.Fatal("the row is still there")
		}
		if ask("a"); r.open(t, "a") != nil {
			t.Fatal("it was asked for a second time")
		}
		r.pass(t, 59*time.Minute-time.Millisecond)
		if ask("a"); r.open(t, "a") != nil {
			t.Fatal("it was asked for a second time, within the hour")
		}
		r.pass(t, time.Millisecond)
		if ask("a"); r.open(t, "a") == nil {
			t.Fatal("an hour later it is not run again")
		}
		finish()
		key.At = r.now + 10*3600_000 // counts from its own time
		key.Unique = "later"
		ask("b")
		if until := r.client.ZScore(t.Context(), r.led.keys[0].unique, UniqueRun("b", "later")).Val(); int64(until) != r.now+11*3600_000 {
			t.Errorf("remembered until %d", int64(until)-r.now)
		}
	})
}

func TestTriggerKeysAreBounded(t *testing.T) {
	useScripts(t, append(steered, edit{"trigger", `tonumber(ARGV[6])`, `2`})...)
	r := realRig(t, oneConfig)
	r.create(t, "a")
	for i, want := range []error{nil, nil, ErrRefused} {
		if _, err := r.led.Trigger(t.Context(), "a", Trigger{Unique: fmt.Sprint(i)}); !errors.Is(err, want) {
			t.Errorf("key %d: %v", i, err)
		}
	}
	if _, err := r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}); err != nil {
		t.Errorf("without a key: %v", err)
	}
}
