package locking

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// twin is the slow, obvious model of one lease: a store that keeps it until an
// instant, and a holder that may work until another.
type twin struct {
	storeEnd  time.Time // the store gives it away from here on
	holderEnd time.Time // the context must have ended by here
}

func (w *twin) granted(asked, served time.Time, ttl, margin time.Duration) {
	w.storeEnd = served.Add(ttl)
	w.holderEnd = asked.Add(ttl - margin - ttl/100)
}

// TestKeeperAgainstTwin draws a network (each call takes its time, and its request or its reply may
// be lost) and checks that the lease ends exactly at the twin's time, and always before the store
// may grant the lock again.
func TestKeeperAgainstTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ttl := rapid.SampledFrom([]time.Duration{3 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute}).Draw(rt, "ttl")
		type fate struct {
			there, back time.Duration
			lost        int // 0 no, 1 the request, 2 the reply
		}
		fates := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) fate {
			ms := rapid.IntRange(0, 400)
			return fate{
				there: time.Duration(ms.Draw(rt, "there")) * time.Millisecond,
				back:  time.Duration(ms.Draw(rt, "back")) * time.Millisecond,
				lost:  rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(rt, "lost"),
			}
		}), 1, 12).Draw(rt, "calls")

		synctest.Test(t, func(t *testing.T) {
			var w twin
			r := &renewals{answer: func(ctx context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
				sent := time.Now()
				if call > len(fates) || fates[call-1].lost == 1 {
					return nil, wait(ctx, time.Hour)
				}
				f := fates[call-1]
				if err := wait(ctx, f.there); err != nil {
					return nil, err
				}
				w.storeEnd = time.Now().Add(ttl)
				if f.lost == 2 {
					return nil, wait(ctx, time.Hour)
				}
				if err := wait(ctx, f.back); err != nil {
					return nil, err
				}
				if time.Now().Before(w.holderEnd) {
					w.holderEnd = sent.Add(ttl - time.Second - ttl/100)
				}
				return all(Renewed, batch), nil
			}}
			asked := time.Now()
			w.granted(asked, asked, ttl, time.Second)
			k := NewKeeper(r, KeeperConfig{})
			l := k.Hold(t.Context(), Grant{Name: "a", TTL: ttl, Asked: asked})
			<-l.Context().Done()
			now := time.Now()
			synctest.Wait() // the twin is the loop's until then
			if !now.Equal(w.holderEnd) {
				rt.Errorf("ended %s after the twin says", now.Sub(w.holderEnd))
			}
			if !now.Before(w.storeEnd) {
				rt.Errorf("ended %s after the store may have granted it to another", now.Sub(w.storeEnd))
			}
		})
	})
}

// wait returns nil after d, or the context's error if that ends first.
func wait(ctx context.Context, d time.Duration) error {
	if !pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}
