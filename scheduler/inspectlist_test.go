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
