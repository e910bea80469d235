package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// checkpoints are the first partition's checkpoints, by run.
func (r *rig) checkpoints(t *testing.T) map[string]string {
	t.Helper()
	all := r.client.HGetAll(t.Context(), r.led.Keys[0].Kept).Val()
	maps.DeleteFunc(all, func(field, _ string) bool { return !strings.HasPrefix(field, ledger.SavedField) })
	return all
}

// runs is the run that a claim is granted.
func (r *rig) runs(t *testing.T, c claim.Claim) ledger.Run {
	t.Helper()
	r.want(t, claim.Granted, c)
	for _, l := range must(query.InFlight(t.Context(), r.led, c.Job)) {
		if l.ID == c.Run {
			return l
		}
	}
	t.Fatalf("%s does not run", c.Run)
	return ledger.Run{}
}

// saved compares the first partition's checkpoints.
func (r *rig) saved(t *testing.T, want map[string]string) {
	t.Helper()
	if got := r.checkpoints(t); !maps.Equal(got, want) {
		t.Errorf("saved: %v, want %v", slices.Sorted(maps.Keys(got)), want)
	}
}

// finds compares the checkpoint that an attempt finds.
func (r *rig) finds(t *testing.T, l ledger.Run, by, want string) {
	t.Helper()
	if got, data, err := settle.Saved(t.Context(), r.led, l); got != by || string(data) != want || err != nil {
		t.Errorf("attempt %d of %d finds %q of %q, want %q of %q: %v", l.Attempt, l.Tick, data, got, want, by, err)
	}
}

// TestSave: a checkpoint is found by the later attempts of its tick alone, is kept only under the
// run's own lease, and goes with a success.
func TestSave(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		save := func(l ledger.Run, before, data string, want error) {
			t.Helper()
			if err := settle.Save(t.Context(), r.led, "", l, before, []byte(data)); !errors.Is(err, want) {
				t.Fatalf("save %q of %s: %v, want %v", data, l.ID, err, want)
			}
		}
		next := func(l ledger.Run) ledger.Run {
			t.Helper()
			return r.runs(t, attempts(9, pendingClaim("a", must(operate.Rerun(t.Context(), r.led, "a", l.ID)))))
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.runs(t, attempts(9, tickClaim("a", "r1", 1)))
		r.finds(t, first, "", "")
		save(first, "", "one", nil)
		save(first, "", "two\x00|\n", nil)
		other := first
		other.Token++
		save(other, "", "by another grant", locking.ErrLeaseLost)
		if err := settle.Save(t.Context(), r.led, "another server", first, "", nil); !errors.Is(err, ledger.ErrServer) {
			t.Errorf("saved at another server: %v", err)
		}
		r.reap(t, "a", "r1")
		save(first, "", "late", locking.ErrLeaseLost)

		second := next(first)
		r.finds(t, second, "r1", "two\x00|\n")
		r.settle(t, settle.Settled, "a", second.ID, jobs.OutcomeFailed) // and has saved nothing

		third := next(second)
		r.finds(t, third, "r1", "two\x00|\n")
		save(third, "r1", "three", nil)
		save(third, "r1", "", nil)
		r.saved(t, map[string]string{ledger.SavedField + third.ID: ""})
		r.settle(t, settle.Settled, "a", third.ID, jobs.OutcomeFailed)

		fourth := next(third)
		r.finds(t, fourth, third.ID, "")
		must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: "a", Run: fourth.ID, Token: fourth.Token, Outcome: jobs.OutcomeSucceeded, Tries: 1, Saved: third.ID}}))
		r.saved(t, map[string]string{})
		if l := r.open(t, "a"); l != nil {
			t.Errorf("in flight after the success: %+v", l)
		}

		another := r.runs(t, tickClaim("a", "r2", 2))
		another.Attempt = 2
		r.finds(t, another, "", "")
		r.settle(t, settle.Settled, "a", "r2", jobs.OutcomeSucceeded)
		fifth := next(fourth)
		save(fifth, "", "x", nil)
		r.settle(t, settle.Settled, "a", fifth.ID, jobs.OutcomeFailed)
		r.finds(t, next(fifth), fifth.ID, "x")
		r.sound(t)
	})
}

// TestSavedOfASuccess: attempts before a success left no checkpoint that counts.
func TestSavedOfASuccess(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.runs(t, tickClaim("a", "r1", 1))
		must(0, settle.Save(t.Context(), r.led, "", first, "", []byte("one")))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeFailed)
		again := must(operate.Rerun(t.Context(), r.led, "a", "r1"))
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", again)) // without reading it
		r.finds(t, r.runs(t, pendingClaim("a", must(operate.Rerun(t.Context(), r.led, "a", again)))), "", "")
	})
}

// TestSavedBesideTheUnreadable: unreadable records are named beside the readable ones.
func TestSavedBesideTheUnreadable(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.runs(t, tickClaim("a", "r1", 1))
		must(0, settle.Save(t.Context(), r.led, "", first, "", []byte("one")))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeFailed)
		second := r.runs(t, pendingClaim("a", must(operate.Rerun(t.Context(), r.led, "a", "r1"))))
		r.client.RPush(t.Context(), r.led.Keys[0].History+"a", "9|of a newer version")
		if by, data, err := settle.Saved(t.Context(), r.led, second); by != "r1" || string(data) != "one" || !errors.Is(err, ledger.ErrUnknownFormat) {
			t.Errorf("beside a row: %q of %q, %v", data, by, err)
		}
		r.client.Set(t.Context(), r.led.Keys[0].Kept, "no hash", 0)
		if _, data, err := settle.Saved(t.Context(), r.led, second); data != nil || !errors.Is(err, ledger.ErrUnknownFormat) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("in no hash: %q, %v", data, err)
		}
		r.client.Del(t.Context(), r.led.Keys[0].Kept)
		r.client.Set(t.Context(), r.led.Keys[0].History+"a", "no list", 0)
		if _, data, err := settle.Saved(t.Context(), r.led, second); data != nil || !errors.Is(err, ledger.ErrUnknownFormat) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("beside no list: %q, %v", data, err)
		}
	})
}

// TestSavedByHand: the later attempts of a run by hand find its checkpoint, and no checkpoint of
// another run of the same instant.
func TestSavedByHand(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		begin := func(run string) ledger.Run {
			t.Helper()
			must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: run}))
			return r.runs(t, pendingClaim("a", run))
		}
		for _, run := range []string{"h1", "h2"} {
			must(0, settle.Save(t.Context(), r.led, "", begin(run), "", []byte(run)))
			r.settle(t, settle.Settled, "a", run, jobs.OutcomeFailed)
		}
		again := r.runs(t, pendingClaim("a", must(operate.Rerun(t.Context(), r.led, "a", "h1"))))
		r.finds(t, again, "h1", "h1")
		r.settle(t, settle.Settled, "a", again.ID, jobs.OutcomeFailed)
		r.finds(t, r.runs(t, pendingClaim("a", must(operate.Rerun(t.Context(), r.led, "a", again.ID)))), "h1", "h1")
	})
}

// TestSavedLeavesWithTheRow: the checkpoint of a tick that did not end well leaves with its row,
// and with its job.
func TestSavedLeavesWithTheRow(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Hour)
		fail := func(second int64) {
			t.Helper()
			l := r.runs(t, tickClaim("a", fmt.Sprint("bad-", second), second))
			must(0, settle.Save(t.Context(), r.led, "", l, "", bytes.Repeat([]byte("x"), jobs.MaxCheckpoint)))
			r.settle(t, settle.Settled, "a", l.ID, jobs.OutcomeFailed)
		}
		fail(1)
		for s := int64(2); s <= 80; s++ {
			r.runOne(t, "a", s)
		}
		r.pass(t, 24*time.Hour)
		for s := int64(81); s <= 160; s++ {
			r.runOne(t, "a", s)
		}
		r.saved(t, map[string]string{})
		fail(161)
		must(0, operate.Remove(t.Context(), r.led, "a"))
		r.saved(t, map[string]string{})
	})
}

// TestSavedIsCopied: a backup or a move takes a checkpoint along, and the next attempt finds it
// there.
func TestSavedIsCopied(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.runs(t, tickClaim("a", "r1", 1))
		must(0, settle.Save(t.Context(), r.led, "", first, "", []byte("one\x00|")))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeFailed)
		there := fillFrom(t, r.client, r.led, "copy", 3, map[string]bool{})
		first.Attempt++
		if by, data, err := settle.Saved(t.Context(), there, first); by != "r1" || string(data) != "one\x00|" || err != nil {
			t.Errorf("found %q of %q, %v", data, by, err)
		}
	})
}

// How far a run is, is stored with its renewal: of a run that was handed back before the renewal
// came, nothing is left behind.
func TestProgressIsStoredWithTheLease(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.create(t, "b")
		r.pass(t, time.Minute)
		kept, back := r.runs(t, tickClaim("a", "kept", 1)), r.runs(t, tickClaim("b", "back", 1))
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: back.Job, Run: back.ID}}))
		batch := []locking.Renewal{{Name: kept.Job, Owner: kept.ID, TTL: ttl, Token: kept.Token}, {Name: back.Job, Owner: back.ID, TTL: ttl, Token: back.Token}}
		got, err := settle.RenewAt(t.Context(), r.led, batch, func(int) string { return "" }, func(run string) string { return "1|" + run })
		if err != nil || !slices.Equal(got, []locking.RenewAnswer{locking.Renewed, locking.Gone}) {
			t.Fatal(got, err)
		}
		if all := r.client.HGetAll(t.Context(), r.led.Keys[0].Kept).Val(); !maps.Equal(all, map[string]string{ledger.ProgressField + kept.ID: "1|" + kept.ID}) {
			t.Errorf("kept is %v", all)
		}
	})
}

// TestTail: a run's output is kept only while the run is in flight, by its token; the run's end
// replaces it, and a node's death does not.
func TestTail(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		token := make(map[string]locking.Token)
		begin := func(run string) {
			t.Helper()
			must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: run}))
			r.want(t, claim.Granted, pendingClaim("a", run))
			for _, l := range must(export.Running(t.Context(), r.led)) {
				token[l.ID] = l.Token
			}
		}
		tail := func(run string, token locking.Token, output string, want int) {
			t.Helper()
			if got, err := settle.KeepTails(t.Context(), r.led, 0, []settle.Tail{{Job: "a", Run: run, Token: token, Output: []byte(output)}}); err != nil || got != want {
				t.Errorf("tail of %s: %d, %v", run, got, err)
			}
		}
		keeps := func(run, want string) {
			t.Helper()
			if got, _, err := query.Kept(t.Context(), r.led, "a", run); string(got) != want || err != nil {
				t.Errorf("kept of %s: %q, %v", run, got, err)
			}
		}
		begin("t")
		tail("t", token["t"], "one", 1)
		tail("t", token["t"]+1, "by another grant", 0)
		tail("nobody", 1, "x", 0)
		keeps("t", "one")
		tail("t", token["t"], "one two", 1)
		must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: "a", Run: "t", Token: token["t"], Outcome: jobs.OutcomeSucceeded, Output: []byte("one two three")}}))
		tail("t", token["t"], "late", 0)
		keeps("t", "one two three")
		begin("dies")
		tail("dies", token["dies"], "last words", 1)
		r.pass(t, time.Hour)
		for _, l := range must(export.Running(t.Context(), r.led)) {
			if got := must(settle.Reap(t.Context(), r.led, r.now, "", []ledger.Run{l})); got[0] != settle.Reaped {
				t.Fatalf("reap: %v", got)
			}
		}
		keeps("dies", "last words")
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		r.pass(t, 24*time.Hour)
		for s := int64(41); s <= 80; s++ {
			r.runOne(t, "a", s)
		}
		if left := r.client.HGetAll(t.Context(), r.led.Keys[0].Kept).Val(); len(left) != 0 {
			t.Errorf("left when the rows are gone: %v", left)
		}
	})
}
