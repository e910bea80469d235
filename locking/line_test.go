package locking

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// caller is a script whose store calls those who wait.
type caller struct {
	*script
	calls   chan struct{}
	stopped int
}

func (c *caller) Listen(string, string) (<-chan struct{}, func()) {
	return c.calls, func() { c.stopped++ }
}

func (c *caller) HangUp() {}

func newCaller(acquire ...error) *caller {
	return &caller{script: newScript(acquire, nil), calls: make(chan struct{}, 1)}
}

func inPlace(n int) error {
	return &HeldError{Name: "a", Owner: "b", Until: 10 * time.Second, Place: n}
}

func TestWaitInLineEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(inPlace(2), nil)
		start := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { c.calls <- struct{}{} })
		lease, err := New(c, Config{}).Acquire(t.Context(), "a", Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 300*time.Millisecond {
			t.Errorf("had it after %s; want with the call", got)
		}
		if c.stopped != 1 || !c.queued {
			t.Errorf("listening was ended %d times, a place was asked for: %t", c.stopped, c.queued)
		}
		lease.Close()
	})
}

// Nobody in line asks often: only the first looks when the holder's lease lapses.
func TestWaitInLineAsksRarely(t *testing.T) {
	for place, most := range map[int]int{1: 30, 2: 20} {
		synctest.Test(t, func(t *testing.T) {
			c := newCaller(inPlace(place))
			l := New(c, Config{})
			_, err := l.Acquire(t.Context(), "a", Options{Wait: 10 * time.Second})
			if !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			if n := len(c.owners); n < 7 || n > most {
				t.Errorf("place %d: asked %d times in 10 s", place, n)
			}
			l.background.wait()
			if len(c.released) != 1 || c.released[0] != c.owners[0] {
				t.Errorf("place %d: released %v; want the place given up", place, c.released)
			}
		})
	}
}

func TestFirstInLineLooksWhenTheLeaseLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(&HeldError{Name: "a", Owner: "b", Until: 200 * time.Millisecond, Place: 1}, nil)
		start := time.Now()
		lease, err := New(c, Config{}).Acquire(t.Context(), "a", Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 201*time.Millisecond {
			t.Errorf("asked again after %s; want when the lease had lapsed", got)
		}
		lease.Close()
	})
}

func TestTryStandsInNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(heldByB)
		start := time.Now()
		_, err := New(c, Config{}).Try(t.Context(), "a", Options{Wait: time.Minute})
		if !errors.Is(err, ErrHeld) || time.Since(start) != 0 || c.queued || len(c.released) != 0 {
			t.Errorf("got %v after %s, queued %t", err, time.Since(start), c.queued)
		}
	})
}

func TestWaitInLineEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(inPlace(3))
		l := New(c, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(ctx, "a", Options{Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrHeld) {
			t.Errorf("got %v; want the cause and the last answer", err)
		}
		l.background.wait()
		if len(c.released) != 1 {
			t.Error("the place in the line was not given up")
		}
	})
}
