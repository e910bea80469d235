package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// TestVotes has masters answer renewals, releases and revocations: y yes, n no,
// a amnesiac, e unreachable, s silent.
func TestVotes(t *testing.T) {
	for answers, want := range map[string]string{
		"yyy": "yes", "yys": "yes", "yye": "yes", "yya": "yes", "yyn": "yes",
		"nnn": "no", "nns": "no", "nny": "no", "nna": "no",
		"yna": "unknown", "yns": "unknown", "sss": "unknown", "eee": "unknown", "yee": "unknown", "naa": "unknown", "nes": "unknown",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := fakeDriver(t, func(m int, _ string) (any, error) {
				switch answers[m] {
				case 'y':
					return int64(1), nil
				case 'n':
					return int64(0), nil
				case 'a':
					return int64(codeForgot), nil
				case 'e':
					return nil, context.DeadlineExceeded
				}
				time.Sleep(time.Hour)
				return nil, errors.New("late")
			})
			renewed, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: 7, TTL: time.Second}})
			got := locking.Unknown
			if err == nil {
				got = renewed[0]
			} else if !errors.Is(err, locking.ErrUnreachable) {
				t.Errorf("renew %s: %v", answers, err)
			}
			if wanted := map[string]locking.RenewAnswer{"yes": locking.Renewed, "no": locking.Gone, "unknown": locking.Unknown}[want]; got != wanted {
				t.Errorf("renew %s: %v; want %v", answers, got, wanted)
			}
			for what, err := range map[string]error{"release": d.Release(t.Context(), "a", "o"), "revoke": d.Revoke(t.Context(), "a", 7)} {
				if wanted := map[string]error{"yes": nil, "no": locking.ErrLost, "unknown": locking.ErrUnreachable}[want]; !errors.Is(err, wanted) {
					t.Errorf("%s %s: %v; want %v", what, answers, err, wanted)
				}
			}
			time.Sleep(9 * time.Hour)
		})
	}
}
