package scheduler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// What was answered is remembered for longer than an event waits, not for ever, and not of another server: that one may have
// lost what it was told.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all told
		var e ledger.Event
		all.begin("one")
		all.keep(e, []string{"a", "b"})
		if !all.has(e, "a") || !all.has(e, "b") || all.has(e, "c") {
			t.Error("it mistakes who has answered")
		}
		time.Sleep(unheldAfter + time.Second)
		if all.begin("one"); !all.has(e, "a") {
			t.Error("forgotten while the event waits")
		}
		if all.begin("two"); all.has(e, "a") {
			t.Error("another server is taken for the one that answered")
		}
		all.keep(e, []string{"a", "b"})
		e.Followers = []string{"a", "b"}
		if all.forget(e); len(all.at) != 0 {
			t.Errorf("%d left of an event that is told", len(all.at))
		}
		for i := range toldMax + 1 {
			all.keep(e, []string{fmt.Sprint(i)})
		}
		if len(all.at) != toldMax {
			t.Errorf("%d remembered, want %d", len(all.at), toldMax)
		}
		time.Sleep(toldFor)
		if all.has(e, "0") {
			t.Error("remembered for too long")
		}
		if all.begin("two"); len(all.at) != 0 {
			t.Errorf("%d left of events that nobody sees any more", len(all.at))
		}
	})
}
