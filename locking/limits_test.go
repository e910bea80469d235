package locking

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

// A margin of which three do not fit into a ttl, or not even into a time.Duration, is refused by its name.
func TestMarginWithoutTTL(t *testing.T) {
	for _, margin := range []time.Duration{maxTTL/3 + 1, math.MaxInt64/3 + 1, 1 << 62, math.MaxInt64} {
		_, err := New(newScript(nil, nil), Config{Margin: margin}).Acquire(t.Context(), "a", Options{TTL: maxTTL})
		var refused *InputError
		if !errors.As(err, &refused) || refused.Field != "Config.Margin" {
			t.Errorf("margin %s: %v; want it to be refused", margin, err)
		}
	}
	if _, err := New(newScript(nil, nil), Config{Margin: maxTTL / 3}).Acquire(t.Context(), "a", Options{TTL: maxTTL}); err != nil {
		t.Error(err)
	}
}

// heedful is a store whose calls do not get through once their context is over.
type heedful struct{ *script }

func (h heedful) Release(ctx context.Context, _, _ string) error { return ctx.Err() }

// As long as one Release would take is no negative time, however long that is.
func TestReleaseAllWithLongCallTimeout(t *testing.T) {
	l := New(heedful{newScript(nil, nil)}, Config{CallTimeout: math.MaxInt64 / 2})
	manyHeld(t, l, 1, Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.ReleaseAll(over); err != nil {
		t.Errorf("%v; want it given back", err)
	}
}
