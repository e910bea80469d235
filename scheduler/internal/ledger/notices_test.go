package ledger_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/notices"
)

// TestNotifiedIsFenced: on both servers, set fields are read, dropped fields are gone, and a
// replaced holder writes nothing.
func TestNotifiedIsFenced(t *testing.T) {
	t.Parallel()
	_, here := redistest.StartEmbedded(t)
	for name, client := range map[string]*redis.Client{"redis": redistest.Start(t).Client(t), "embedded": here} {
		l, err := ledger.Join(t.Context(), client, ledger.Config{})
		if err != nil {
			t.Fatal(err)
		}
		want := func(fields map[string]string) {
			t.Helper()
			if got, err := notices.Read(t.Context(), l); err != nil || !maps.Equal(got, fields) {
				t.Errorf("%s: %v %v, want %v", name, got, err, fields)
			}
		}
		set := func(token int64, set map[string]string, drop ...string) error {
			return notices.Write(t.Context(), l, token, set, drop)
		}
		if err := set(1795697320113665, map[string]string{"a": "1", "b": "{}"}); err != nil {
			t.Fatal(name, err)
		}
		want(map[string]string{"a": "1", "b": "{}"})
		if err := set(1795697320113666, nil, "a", "c"); err != nil {
			t.Fatal(name, err)
		}
		want(map[string]string{"b": "{}"})
		if err := set(1795697320113665, map[string]string{"a": "2"}, "b"); !errors.Is(err, notices.ErrStale) {
			t.Errorf("%s: a stale token: %v", name, err)
		}
		want(map[string]string{"b": "{}"})
	}
}
