package locking

import (
	"errors"
	"testing"
	"time"
)

// A Locker with a negative time in its Config does nothing.
func TestRefusedConfig(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Config.Margin":      {Margin: -time.Hour},
		"Config.CallTimeout": {CallTimeout: -1},
	} {
		s := newScript(nil, nil)
		l := New(s, cfg)
		_, acquire := l.Acquire(t.Context(), "a", Options{})
		_, takeOver := l.TakeOver(t.Context(), "a", 7, Options{})
		_, owner := l.Owner(t.Context(), "a")
		for what, err := range map[string]error{"acquire": acquire, "take over": takeOver, "owner": owner, "revoke": l.Revoke(t.Context(), "a", 7)} {
			var input *InputError
			if !errors.As(err, &input) || input.Field != field {
				t.Errorf("%s with %+v: %v; want an *InputError of %s", what, cfg, err, field)
			}
		}
		if len(s.owners) > 0 {
			t.Errorf("%+v: the store was asked", cfg)
		}
	}
}
