package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// TestAcquireOutcomes has masters answer an acquisition with codes, and shows the result: p
// promised, h held by x, y held by y, r returned, f too far, a amnesiac, e unreachable, n refused
// by Redis, s without an answer.
func TestAcquireOutcomes(t *testing.T) {
	var refused *locking.InputError
	tests := []struct {
		answers  string
		want     string // held, unreachable, lost, refused, other, or granted
		takeBack bool
	}{
		{"ppp", "granted", false},
		{"pps", "granted", true}, // s answers when the lease is over
		{"ppe", "granted", false},
		{"hhp", "held", true},
		{"hhs", "held", true}, // s may have promised
		{"hys", "held", true},
		{"hyp", "held", true},
		{"phs", "unreachable", true},
		{"pha", "unreachable", true},
		{"pss", "unreachable", false},
		{"pee", "unreachable", false},
		{"sss", "unreachable", false},
		{"pea", "unreachable", false},
		{"aaa", "unreachable", false},
		{"aap", "unreachable", false},
		{"rrr", "lost", false}, // nothing to take back
		{"rre", "lost", true},
		{"rpe", "unreachable", true}, // it gave back its promises without a quorum
		{"rhs", "unreachable", true},
		{"fff", "refused", false},
		{"ffp", "refused", true},
		{"fpp", "granted", false}, // one master's clock is wrong
		{"fpe", "unreachable", true},
		{"nnn", "other", true},
		{"pnn", "other", true},
		{"nne", "unreachable", false},
	}
	for _, tt := range tests {
		t.Run(tt.answers, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := make(chan struct{}, 9)
				d := fakeDriver(t, func(m int, script string) (any, error) {
					switch script {
					case "release":
						released <- struct{}{}
						return int64(1), nil
					case "node":
						return nil, context.DeadlineExceeded
					}
					switch tt.answers[m] {
					case 'p':
						return reply(m, codePromised, "", 0), nil
					case 'h':
						return reply(m, codeHeld, "x", 1000+m), nil
					case 'y':
						return reply(m, codeHeld, "y", 500), nil
					case 'r':
						return reply(m, codeReturned, "", 0), nil
					case 'f':
						return reply(m, codeTooFar, "", 0), nil
					case 'a':
						return reply(m, codeLostState, "", 0), nil
					case 'e':
						return nil, context.DeadlineExceeded
					case 'n':
						return nil, errors.New("WRONGTYPE")
					}
					time.Sleep(time.Hour) // its client ignores the context
					return nil, errors.New("late")
				})
				begun := time.Now()
				_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second, After: 3})
				if spent := time.Since(begun); spent > 2*defaultMasterTimeout {
					t.Errorf("took %s", spent)
				}
				got := map[bool]string{errors.Is(err, locking.ErrHeld): "held", errors.Is(err, locking.ErrUnreachable): "unreachable",
					errors.Is(err, locking.ErrLost): "lost", errors.As(err, &refused): "refused", err == nil: "granted"}[true]
				if got == "" {
					got = "other"
				}
				if got != tt.want {
					t.Errorf("got %s: %v; want %s", got, err, tt.want)
				}
				if words := map[string]string{"aaa": "3 are new, were emptied or were restarted, and grant no locks; call redlock.Bootstrap once",
					"pea": "2 must promise; 1 did, 0 refused, 1 do not vote: "}[tt.answers]; words != "" && !strings.Contains(err.Error(), words) {
					t.Errorf("got %v; want %q in it", err, words)
				}
				var held *locking.HeldError
				if errors.As(err, &held) && (held.Owner == contenders) != strings.Contains(tt.answers, "y") {
					t.Errorf("held by %q; want an owner only if a majority names it", held.Owner)
				}
				time.Sleep(2 * time.Hour)
				if taken := len(released) > 0; taken != tt.takeBack {
					t.Errorf("taken back: %t; want %t", taken, tt.takeBack)
				}
			})
		})
	}
}

func TestTooLong(t *testing.T) {
	d := fakeDriver(t, nil)
	_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: 40 * time.Second, Delay: 21 * time.Second})
	var refused *locking.InputError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "1m1s together, more than Config.MaxTTL 1m0s") {
		t.Errorf("got %v", err)
	}
}

// TestSameServerTwice: two names that lead to one server fail the acquisition
// that sees it, and nothing else.
func TestSameServerTwice(t *testing.T) {
	var mixed atomic.Bool
	mixed.Store(true)
	d := fakeDriver(t, func(m int, script string) (any, error) {
		switch {
		case script != "acquire":
			return int64(1), nil
		case mixed.Load():
			m = 0
		}
		return reply(m, codePromised, "", 0), nil
	})
	acquire := func() error {
		_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second})
		return err
	}
	var refused *locking.InputError
	for range 2 {
		if err := acquire(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "same server") {
			t.Fatalf("got %v; want an *InputError: two votes of one server are one", err)
		}
	}
	_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: 7, TTL: time.Second}})
	if err := errors.Join(renew, d.Release(t.Context(), "a", "o"), d.Revoke(t.Context(), "a", 7)); err != nil {
		t.Errorf("a lock that was granted before cannot be renewed, released and revoked: %v", err)
	}
	mixed.Store(false)
	if err := acquire(); err != nil {
		t.Errorf("when the names lead to three servers again: %v", err)
	}
}

// However many acquisitions of one process want one lock, each gets the masters' answers within a round trip.
func TestManyAcquisitions(t *testing.T) {
	const roundTrip = 2 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		d := fakeDriver(t, func(m int, script string) (any, error) {
			time.Sleep(roundTrip)
			if script == "acquire" {
				return reply(m, codeHeld, "another", 1000), nil
			}
			return int64(1), nil
		})
		begun := time.Now()
		var waiters sync.WaitGroup
		for i := range 100 {
			waiters.Go(func() {
				_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: fmt.Sprint(i), TTL: time.Second})
				if !errors.Is(err, locking.ErrHeld) {
					t.Errorf("%d: want ErrHeld, got %v", i, err)
				}
			})
		}
		waiters.Wait()
		if spent := time.Since(begun); spent != roundTrip {
			t.Errorf("the last of them was answered after %s; want %s", spent, roundTrip)
		}
		d.Wait()
	})
}
