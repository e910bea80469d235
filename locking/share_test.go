package locking

import (
	"errors"
	"testing"
	"testing/synctest"
)

// TestSharesNeedASharer: a store that has only locks gets no request for a permit or a mode.
func TestSharesNeedASharer(t *testing.T) {
	for field, options := range map[string][]Options{
		"Options.Permits": {{Permits: 2}, {Permits: -1}, {Permits: MaxPermits + 1}},
		"Options.Mode":    {{Mode: Read}, {Mode: Write}, {Mode: Write + 1}},
	} {
		for _, o := range options {
			s := newScript(nil, nil)
			_, err := New(s, Config{}).Acquire(t.Context(), "a", o)
			var input *InputError
			if !errors.As(err, &input) || input.Field != field || len(s.owners) != 0 {
				t.Errorf("%d permits, mode %s: %v after %d calls; want an *InputError of %s, and none", o.Permits, o.Mode, err, len(s.owners), field)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		lease, err := New(newScript(nil, nil), Config{}).Acquire(t.Context(), "a", Options{Permits: 1})
		if err != nil {
			t.Fatal(err)
		}
		lease.Close() // one permit is a lock
	})
}
