package locking

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Cases beside the kit's case "re-enter": a hold that was left cannot be entered, and one inside
// ends with the lock.
func TestReenterAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := mustHold(t, New(newScript(nil, nil), Config{}), "a", Options{})
		in, err := outer.Reenter(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		deeper, err := in.Reenter(in.Context())
		if err != nil {
			t.Fatal(err)
		}
		left, err := outer.Reenter(t.Context())
		if err := errors.Join(err, left.Release(t.Context()), left.Release(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := left.Reenter(t.Context()); !errors.Is(err, ErrLost) || left.Lost() {
			t.Errorf("entered a hold that was left: %v, lost %t", err, left.Lost())
		}
		if err := errors.Join(outer.Release(t.Context()), deeper.Release(t.Context()), in.Release(t.Context())); err != nil || in.Valid() || deeper.Valid() {
			t.Errorf("release of the outer first: %v; the holds inside are valid %t, %t", err, in.Valid(), deeper.Valid())
		}
	})
}

func TestReenterEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, nil)
		s.answer = down
		outer := mustHold(t, New(s, Config{}), "a", Options{})
		in, err := outer.Reenter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-in.Context().Done()
		if !errors.Is(context.Cause(in.Context()), ErrLeaseLost) || in.Valid() || !in.Lost() {
			t.Errorf("cause %v, valid %t, lost %t; want lost", context.Cause(in.Context()), in.Valid(), in.Lost())
		}
		if err := in.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("release of the lost: %v; want ErrLost", err)
		}
		if _, err := outer.Reenter(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("entered a lost hold: %v", err)
		}
	})
}

func TestReenterByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, nil)
		l := New(s, Config{})
		outer := mustHold(t, l, "a", Options{})
		other, err := l.Acquire(outer.Context(), "b", Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(other.Context()) // of both leases
		defer cancel()

		asked := len(s.owners)
		in, err := l.Acquire(ctx, "a", Options{Reenter: true})
		if err != nil || in.Owner() != outer.Owner() || len(s.owners) != asked {
			t.Fatalf("got %v, %v; want the hold of the context", in, err)
		}
		for what, acquire := range map[string]func() (*Lease, error){
			"another name":   func() (*Lease, error) { return l.Acquire(ctx, "c", Options{Reenter: true}) },
			"another locker": func() (*Lease, error) { return New(s, Config{}).Acquire(ctx, "a", Options{Reenter: true}) },
			"not wanted":     func() (*Lease, error) { return l.Acquire(ctx, "a", Options{}) },
		} {
			lease, err := acquire()
			if err != nil || lease.Owner() == outer.Owner() {
				t.Errorf("%s: owner %s, %v; want an acquisition of its own", what, lease.Owner(), err)
			}
			lease.Close()
		}
		outer.Close()
		if lease, err := l.Acquire(context.WithoutCancel(ctx), "a", Options{Reenter: true}); err != nil || lease.Owner() == outer.Owner() {
			t.Errorf("after the hold ended: %v; want an acquisition of its own", err)
		} else {
			lease.Close()
		}
		other.Close()
	})
}

// A context of a hold that was entered again and left also comes from the hold around it.
func TestReenterByTheContextOfOneThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(newScript([]error{nil, heldByB}, nil), Config{})
		outer := mustHold(t, l, "a", Options{})
		defer outer.Close()
		in, err := outer.Reenter(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := l.Acquire(context.WithoutCancel(in.Context()), "a", Options{Reenter: true})
		if err != nil {
			t.Fatalf("%v; want the hold of the context", err)
		}
		if again.Owner() != outer.Owner() || !again.Valid() {
			t.Errorf("owner %s, valid %t; want the hold of the context", again.Owner(), again.Valid())
		}
	})
}

// A holder that acquires its own lock again without Options.Reenter gets an error with the cure.
func TestHeldByItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript([]error{nil, heldByB}, nil)
		l := New(s, Config{})
		outer := mustHold(t, l, "a", Options{})
		defer outer.Close()
		const hint = "Options.Reenter"
		var held *HeldError
		if _, err := l.Try(outer.Context(), "a", Options{}); !errors.As(err, &held) || !strings.Contains(err.Error(), hint) {
			t.Errorf("under the lease's own context: %v; want a *HeldError that says %s", err, hint)
		}
		if _, err := l.Try(t.Context(), "a", Options{}); !errors.As(err, &held) || strings.Contains(err.Error(), hint) {
			t.Errorf("under another context: %v", err)
		}
	})
}

// The contexts of all holds have ended when the store gets the request to release the lock.
func TestContextsEndBeforeTheRelease(t *testing.T) {
	s := newScript(nil, nil)
	l := New(s, Config{})
	for range 1000 {
		outer := mustHold(t, l, "a", Options{})
		in, err := outer.Reenter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := outer.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for what, lease := range map[string]*Lease{"the hold": outer, "the one entered again": in} {
			select {
			case <-lease.Context().Done():
			default:
				t.Fatalf("%s: its context goes on", what)
			}
		}
		if cause := context.Cause(in.Context()); !errors.Is(cause, ErrReleased) {
			t.Fatal(cause)
		}
		_ = in.Release(t.Context())
	}
}

// A context that was entered again notices a suspension of the machine as the lease's own does.
func TestReenteredContextLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(healthy)
		slept := time.Duration(1)
		k.slept = func() time.Duration { return slept }
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		in, err := l.Reenter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slept += time.Hour
		if in.Context().Err() == nil {
			t.Errorf("past the deadline the context's Err is nil (valid %t, outer %v)", in.Valid(), l.Context().Err())
		}
		l.Close()
		synctest.Wait()
	})
}

// The kit's cases test each driver. Here: a hold without a Sharer, and the error of a waiter
// inside.
func TestReenterForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(newScript(nil, nil), Config{})
		outer := mustHold(t, l, "a", Options{Delay: time.Second})
		defer func() { _ = outer.Release(t.Context()) }()
		for field, o := range map[string]Options{"Options.Delay": {Delay: 2 * time.Second}, "Options.After": {After: outer.Token()}} {
			o.Reenter = true
			in, err := l.Acquire(outer.Context(), "a", o)
			var input *InputError
			if !errors.As(err, &input) || input.Field != field || !strings.Contains(input.Why, "this context comes from a lease with") {
				t.Errorf("%s: got %v, %v; want an *InputError", field, in, err)
			}
		}
	})
}
