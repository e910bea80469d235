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
// a without its state, e unreachable, s without an answer.
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
					return int64(codeLostState), nil
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

// TestOwnerVotes has masters answer with a lock's holder: x and y with token 7, X is x with token
// 9, f free, a free and without its state, e unreachable. The result is the owner and the token of
// a majority, or free by a majority: a lock that is taken over between the answers seems split.
func TestOwnerVotes(t *testing.T) {
	for answers, want := range map[string]string{
		"xxx": "x 7", "xxe": "x 7", "xxf": "x 7", "xxX": "x 7", "XXx": "x 9", "xxy": "x 7",
		"fff": "free", "ffe": "free", "ffx": "free",
		"xXe": "unknown", "xXf": "unknown", "xyf": "unknown", "xyX": "unknown", "xfe": "unknown", "xfa": "unknown",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := fakeDriver(t, func(m int, _ string) (any, error) {
				switch answers[m] {
				case 'x':
					return []any{int64(1), "x", int64(7), int64(0), int64(500), ""}, nil
				case 'X':
					return []any{int64(1), "x", int64(9), int64(0), int64(500), ""}, nil
				case 'y':
					return []any{int64(1), "y", int64(7), int64(0), int64(500), ""}, nil
				case 'f':
					return []any{int64(1), "", int64(0), int64(0), int64(0), ""}, nil
				case 'a':
					return []any{int64(0), "", int64(0), int64(0), int64(0), ""}, nil
				}
				return nil, context.DeadlineExceeded
			})
			o, err := d.Owner(t.Context(), "a")
			got := "free"
			switch {
			case errors.Is(err, locking.ErrUnreachable):
				got = "unknown"
			case err != nil:
				got = err.Error()
			case o.Held() && o.Token == 7:
				got = o.Owner + " 7"
			case o.Held() && o.Token == 9:
				got = o.Owner + " 9"
			}
			if got != want {
				t.Errorf("%s: %s; want %s", answers, got, want)
			}
		})
	}
}
