package locking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Each error of a Locker names the lock, and once.
func TestErrorsNameTheLockOnce(t *testing.T) {
	const name = "orders"
	held := &HeldError{Name: name, Owner: "b", Until: 10 * time.Second}
	tooFar := &InputError{Lock: name, Field: "Options.After", Why: "is far ahead"}
	timeout := fmt.Errorf("acquire at redis r:1: %w: %w", ErrUnreachable, context.DeadlineExceeded)
	tests := map[string]struct {
		acquire, release error
		stop             bool // while it waits
		want             string
	}{
		"unreachable":         {acquire: timeout, want: `lock "orders": acquire at redis r:1: store unreachable: context deadline exceeded`},
		"refused":             {acquire: errors.New("acquire at redis r:1: NOPERM"), want: `lock "orders": acquire at redis r:1: NOPERM`},
		"held":                {acquire: held, want: held.Error()},
		"refused input":       {acquire: tooFar, want: tooFar.Error()},
		"gave up: held":       {acquire: held, stop: true, want: `lock "orders": gave up: enough (last answer: held by another (b, 10s left))`},
		"gave up: no answer":  {acquire: timeout, stop: true, want: `lock "orders": gave up: enough (last answer: acquire at redis r:1: store unreachable: context deadline exceeded)`},
		"release: lost":       {release: fmt.Errorf("release at redis r:1: %w: it had lapsed", ErrLost), want: `lock "orders": release at redis r:1: not held any more: it had lapsed`},
		"release: cut by ctx": {release: context.Canceled, want: `release lock "orders": store unreachable: context canceled`},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(newScript([]error{tt.acquire}, []error{tt.release}), Config{})
				defer l.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				wait := time.Duration(0)
				if tt.stop {
					wait = time.Minute
					time.AfterFunc(5*time.Second, func() { cancel(errors.New("enough")) })
				}
				lease, err := l.Acquire(ctx, name, Options{Wait: wait})
				if lease != nil {
					err = lease.Release(ctx)
				}
				if err == nil || err.Error() != tt.want || strings.Count(err.Error(), name) != 1 {
					t.Errorf("got  %v\nwant %s", err, tt.want)
				}
				if errors.Is(tt.acquire, ErrHeld) {
					tt.acquire = ErrHeld // each Acquire has its own copy
				}
				if tt.acquire != nil && !errors.Is(err, tt.acquire) {
					t.Errorf("the last answer is not in %v", err)
				}
			})
		})
	}
}

// Where the time left is unknown, the error names none: "0s left" would mean now.
func TestHeldErrorText(t *testing.T) {
	const (
		now   = "; wait for it with Options.Wait or try later"
		later = "; wait longer with Options.Wait, or try later"
	)
	for want, err := range map[string]*HeldError{
		"held by another (b, 10s left)" + now:                             {Until: 10 * time.Second},
		"held by another (b, 1ms left)" + now:                             {Until: time.Millisecond},
		"held by another (b)" + now:                                       {},
		"held by another (me, b, 10s left)" + now:                         {Holder: "me", Until: 10 * time.Second},
		"still held by another after waiting 1s (me, b)" + later:          {Holder: "me", Waited: time.Second},
		"still held by another after waiting 1s (me, b, 2s left)" + later: {Holder: "me", Waited: time.Second, Until: 2 * time.Second},
	} {
		err.Name, err.Owner = "a", "b"
		if got := err.Error(); got != `lock "a": `+want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
