package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// TestTail: a run's output is kept only while the run is in flight, by its token; the run's end
// replaces it, and a node's death does not.
func TestTail(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		token := make(map[string]locking.Token)
		begin := func(run string) {
			t.Helper()
			must(r.led.Trigger(t.Context(), "a", Trigger{Run: run}))
			r.want(t, Granted, pendingClaim("a", run))
			for _, l := range must(r.led.Running(t.Context())) {
				token[l.ID] = l.Token
			}
		}
		tail := func(run string, token locking.Token, output string, want int) {
			t.Helper()
			if got, err := r.led.Tail(t.Context(), 0, []Tail{{Job: "a", Run: run, Token: token, Output: []byte(output)}}); err != nil || got != want {
				t.Errorf("tail of %s: %d, %v", run, got, err)
			}
		}
		keeps := func(run, want string) {
			t.Helper()
			if got, _, err := r.led.Kept(t.Context(), "a", run); string(got) != want || err != nil {
				t.Errorf("kept of %s: %q, %v", run, got, err)
			}
		}
		begin("t")
		tail("t", token["t"], "one", 1)
		tail("t", token["t"]+1, "by another grant", 0)
		tail("nobody", 1, "x", 0)
		keeps("t", "one")
		tail("t", token["t"], "one two", 1)
		must(r.led.Settle(t.Context(), []Report{{Job: "a", Run: "t", Token: token["t"], Outcome: jobs.OutcomeSucceeded, Output: []byte("one two three")}}))
		tail("t", token["t"], "late", 0)
		keeps("t", "one two three")
		begin("dies")
		tail("dies", token["dies"], "last words", 1)
		r.pass(t, time.Hour)
		for _, l := range must(r.led.Running(t.Context())) {
			if got := must(r.led.Reap(t.Context(), r.now, "", []Run{l})); got[0] != Reaped {
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
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].kept).Val(); len(left) != 0 {
			t.Errorf("left when the rows are gone: %v", left)
		}
	})
}
