package scheduler_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A range begins before the instant that is asked for, and has ticks since.
func TestListSinceWithinARange(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, first := c.inspector(), b.def.Cursor
		time.Sleep(time.Hour)
		last, next := first+9*60_000, first+10*60_000
		b.claim(ledger.Passed, ledger.Claim{Run: "r", From: first, Next: next,
			Passes: []ledger.Pass{{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: first, Last: last, Count: 10, Next: next}}})
		for _, tt := range []struct {
			since int64
			want  int
		}{{first, 1}, {first + 1, 1}, {last, 1}, {last + 1, 0}} {
			list := must[scheduler.RunList](t)(i.List(t.Context(), scheduler.RunFilter{Since: time.UnixMilli(tt.since)}))
			if len(list.Runs) != tt.want || list.Matched != tt.want {
				t.Errorf("since %d ms after its first tick: %+v, want %d", tt.since-first, list, tt.want)
			}
		}
	})
}

// A run that is handed back between Cancel's look and its script is another id's now, and is ended all the same.
func TestCancelFollowsAHandBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		hand := must[string](t)(c.inspector().Trigger(t.Context(), "job", scheduler.TriggerOptions{}))
		b.claim(ledger.Granted, ledger.Claim{Run: hand, Pending: true})
		client := c.client()
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(around{script: "cancel", before: sync.OnceFunc(func() { b.handBack(hand) })})
		i := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, ""))
		if did, err := i.Cancel(t.Context(), hand, scheduler.CancelOptions{}); did != scheduler.CancelRecorded || err != nil {
			t.Errorf("got %q, %v", did, err)
		}
		if v := must[scheduler.RunView](t)(i.Run(t.Context(), hand)); v.Outcome != "cancelled" {
			t.Errorf("it goes on: %+v", v)
		}
	})
}

// JSON takes a string that is no UTF-8 for valid; what is shown is UTF-8 all the same.
func TestPayloadIsShownAsText(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, ctx := c.inspector(), t.Context()
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{Payload: []byte("\"a\xff\"")}))
		v := must[scheduler.RunView](t)(i.Run(ctx, id))
		if text := must[[]byte](t)(json.Marshal(v)); !utf8.Valid(text) || string(v.Payload) != "\"a\uFFFD\"" {
			t.Errorf("got %q", text)
		}
	})
}

// The master of a job's partition goes by another clock than the one that was asked: nothing moves, and pausing the job would not help.
func TestRewindByAnotherClock(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		first, client := b.def.Cursor, c.client()
		t.Cleanup(func() { _ = client.Close() })
		time.Sleep(2 * 366 * 24 * time.Hour) // to instants that otherClock takes for some
		next := first + 10*60_000
		b.claim(ledger.Passed, ledger.Claim{Run: "r", From: first, Next: next,
			Passes: []ledger.Pass{{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: first, Last: next - 60_000, Count: 10, Next: next}}})
		keys := make(map[string]bool)
		for _, key := range must[[]string](t)(client.Keys(t.Context(), "*:jobs").Result()) {
			keys[key] = true
		}
		client.AddHook(otherClock{keys: keys})
		_, err := must[*scheduler.Inspector](t)(scheduler.NewInspector(client, "")).Rewind(t.Context(), "job", time.UnixMilli(first))
		if !errors.Is(err, ledger.ErrClock) || errors.Is(err, scheduler.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

// A range has its place by its newest tick, as it has for Since: one that began long ago and goes on is not behind what came since.
func TestListPlacesARangeByItsNewestTick(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, first := c.inspector(), b.def.Cursor
		for range 5 { // each hour 60 more ticks are missed, in one row
			time.Sleep(time.Hour)
			from := must[ledger.Stored](t)(b.Job(t.Context(), "job")).Cursor
			last := time.Now().UnixMilli() / 60_000 * 60_000
			next := last + 60_000
			b.claim(ledger.Passed, ledger.Claim{Run: "r", From: from, Next: next, Passes: []ledger.Pass{{Outcome: jobs.OutcomeMissed,
				Reason: ledger.ReasonLate, First: from, Last: last, Count: (last-from)/60_000 + 1, Next: next}}})
		}
		hand := must[string](t)(i.Trigger(t.Context(), "job", scheduler.TriggerOptions{At: time.UnixMilli(first + 60_000)}))
		for limit, want := range map[int]int{1: 1, 0: 2} {
			list := must[scheduler.RunList](t)(i.List(t.Context(), scheduler.RunFilter{Limit: limit}))
			if len(list.Runs) != want || list.Runs[0].Until == nil || want > 1 && list.Runs[1].Run != hand {
				t.Errorf("with limit %d: %+v, want the range first", limit, list.Runs)
			}
		}
	})
}
