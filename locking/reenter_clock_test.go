package locking

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

type okRenewer struct{}

func (okRenewer) Renew(_ context.Context, b []Renewal) ([]RenewAnswer, error) {
	return make([]RenewAnswer, len(b)), nil
}

func TestReenteredContextLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(okRenewer{}, KeeperConfig{})
		slept := time.Duration(1)
		k.slept = func() time.Duration { return slept }
		l := k.Hold(t.Context(), Grant{Name: "a", Owner: "o", Token: 1, TTL: 15 * time.Second, Asked: time.Now()})
		in, err := l.Reenter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slept += time.Hour // suspended
		if in.Context().Err() == nil {
			t.Errorf("past the deadline the re-entered context's Err is nil (valid %v, outer %v)", in.Valid(), l.Context().Err())
		}
		l.Close()
		k.Wait()
	})
}
