package locking

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquireAnswers(t *testing.T) {
	broken := errors.New("WRONGTYPE")
	tests := map[string]struct {
		acquire  []error
		wait     time.Duration
		want     error // nil: a lease
		asked    int   // calls
		released bool  // in the background
	}{
		"granted":                       {acquire: nil, asked: 1},
		"held":                          {acquire: []error{heldByB}, want: ErrHeld, asked: 1},
		"held, then free":               {acquire: []error{heldByB, heldByB, nil}, wait: time.Minute, asked: 3},
		"unknown, then granted":         {acquire: []error{ErrUnreachable, nil}, asked: 2},
		"unknown, then held":            {acquire: []error{ErrUnreachable, heldByB}, want: ErrHeld, asked: 2, released: true},
		"unknown for good":              {acquire: []error{ErrUnreachable}, want: ErrUnreachable, asked: 2, released: true},
		"unknown, waiting":              {acquire: []error{ErrUnreachable, ErrUnreachable, ErrUnreachable, nil}, wait: time.Minute, asked: 4},
		"refused":                       {acquire: []error{broken}, wait: time.Minute, want: broken, asked: 1},
		"unknown, then refused":         {acquire: []error{ErrUnreachable, broken}, want: broken, asked: 2, released: true},
		"timeout counts as unreachable": {acquire: []error{context.DeadlineExceeded, nil}, asked: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(tt.acquire, nil)
				l := New(s, Config{})
				lease, err := l.Acquire(t.Context(), "a", Options{Wait: tt.wait})
				if !errors.Is(err, tt.want) {
					t.Fatalf("got error %v; want %v", err, tt.want)
				}
				synctest.Wait()
				if len(s.owners) != tt.asked {
					t.Errorf("asked %d times; want %d", len(s.owners), tt.asked)
				}
				for _, o := range s.owners {
					if o != s.owners[0] {
						t.Errorf("asked again with another owner: %v", s.owners)
					}
				}
				if got := len(s.released) > 0; got != tt.released {
					t.Errorf("released in the background: %t; want %t", got, tt.released)
				}
				if lease == nil {
					return
				}
				if lease.Owner() != s.owners[0] || lease.Token() != 7 || lease.Name() != "a" || !lease.Valid() {
					t.Errorf("lease %v, owner %s", lease.Context(), lease.Owner())
				}
				lease.Close()
			})
		})
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newScript([]error{ErrUnreachable}, []error{ErrUnreachable, ErrUnreachable, nil})
		l := New(s, Config{})
		time.AfterFunc(3*time.Second, func() { cancel(stop) })
		start := time.Now()
		_, err := l.Acquire(ctx, "a", Options{Wait: time.Hour})
		if !errors.Is(err, stop) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v; want the cause and the last answer", err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("returned after %s; want 3s", got)
		}
		l.background.running.Wait()
		if len(s.released) != 3 || s.released[0] != s.owners[0] {
			t.Errorf("background releases %v of owner %s; want until one is answered", s.released, s.owners[0])
		}
		if _, err := l.Acquire(ctx, "a", Options{}); !errors.Is(err, stop) || len(s.owners) == 0 {
			t.Errorf("with a context that is over: %v", err)
		}
	})
}

// notifyingScript is a script whose store has queues.
type notifyingScript struct {
	*script
	calls   chan struct{}
	stopped int
}

func (c *notifyingScript) Listen(string, string) (<-chan struct{}, func()) {
	return c.calls, func() { c.stopped++ }
}

func (c *notifyingScript) Close() {}

func newCaller(acquire ...error) *notifyingScript {
	return &notifyingScript{script: newScript(acquire, nil), calls: make(chan struct{}, 1)}
}

func inPlace(n int) error {
	return &HeldError{Name: "a", Owner: "b", Until: 10 * time.Second, Place: n}
}

func TestQueuedWaiterIsNotified(t *testing.T) {
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

// A queued waiter polls rarely. Only the first waiter polls when the holder's lease lapses.
func TestQueuedWaiterAsksRarely(t *testing.T) {
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
			l.background.running.Wait()
			if len(c.released) != 1 || c.released[0] != c.owners[0] {
				t.Errorf("place %d: released %v; want the place given up", place, c.released)
			}
		})
	}
}

func TestAcquireRefusesBadInput(t *testing.T) {
	s := newScript(nil, nil)
	l := New(s, Config{})
	tests := []struct {
		name  string
		o     Options
		field string
		want  string // in the error
	}{
		{"", Options{}, "name", "empty"},
		{strings.Repeat("x", 513), Options{}, "name", "at most 512"},
		{"a\nb", Options{}, "name", "printable"},
		{"a\xff", Options{}, "name", "printable"},
		{"a", Options{TTL: 2 * time.Second}, "Options.TTL", "at least 3s"},
		{"a", Options{TTL: -1}, "Options.TTL", "at least 3s"},
		{"a", Options{TTL: 31 * 24 * time.Hour}, "Options.TTL", "at most 720h"},
		{"a", Options{Wait: -1}, "Options.Wait", "negative"},
		{"a", Options{Delay: -1}, "Options.Delay", "0 to 720h"},
		{"a", Options{Delay: 721 * time.Hour}, "Options.Delay", "0 to 720h"},
		{"a", Options{After: -1}, "Options.After", "2^53"},
		{"a", Options{After: 1 << 53}, "Options.After", "2^53"},
		{"a", Options{Holder: strings.Repeat("x", 129)}, "Options.Holder", "at most 128"},
		{"a", Options{Holder: "a\nb"}, "Options.Holder", "printable"},
	}
	for _, tt := range tests {
		_, err := l.Acquire(t.Context(), tt.name, tt.o)
		var input *InputError
		if !errors.As(err, &input) || input.Field != tt.field || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Acquire(%.10q, %+v): %v; want an *InputError of %s with %q", tt.name, tt.o, err, tt.field, tt.want)
		}
	}
	_, err := l.Acquire(t.Context(), "", Options{TTL: 1, Wait: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v; want all three faults", err)
	}
	var input *InputError
	if _, err := l.TakeOver(t.Context(), "a", 0, Options{}); !errors.As(err, &input) || input.Field != "from" {
		t.Errorf("TakeOver without a token: %v; want an *InputError", err)
	}
	if _, err := l.Owner(t.Context(), ""); !errors.As(err, &input) {
		t.Errorf("Owner of no name: %v; want an *InputError", err)
	}
	if err := l.Revoke(t.Context(), "", 1); !errors.As(err, &input) {
		t.Errorf("Revoke of no name: %v; want an *InputError", err)
	}
	if err := l.Do(t.Context(), "a", Options{}, nil); !errors.As(err, &input) || input.Field != "f" {
		t.Errorf("Do of no function: %v; want an *InputError", err)
	}
	if len(s.owners) > 0 {
		t.Error("the store was asked")
	}
}

// A Locker with a negative time in its Config does nothing, nor one with a margin of which three do not fit into a ttl, or not
// even into a time.Duration.
func TestRefusedConfig(t *testing.T) {
	for _, tt := range []struct {
		field string
		cfg   Config
	}{
		{"Config.Margin", Config{Margin: -time.Hour}},
		{"Config.CallTimeout", Config{CallTimeout: -1}},
		{"Config.Margin", Config{Margin: maxTTL/3 + 1}},
		{"Config.Margin", Config{Margin: math.MaxInt64/3 + 1}},
		{"Config.Margin", Config{Margin: math.MaxInt64}},
	} {
		s := newScript(nil, nil)
		l := New(s, tt.cfg)
		_, acquire := l.Acquire(t.Context(), "a", Options{TTL: maxTTL})
		_, takeOver := l.TakeOver(t.Context(), "a", 7, Options{TTL: maxTTL})
		errs := []error{acquire, takeOver}
		if tt.cfg.Margin <= 0 {
			_, owner := l.Owner(t.Context(), "a")
			errs = append(errs, owner, l.Revoke(t.Context(), "a", 7))
		}
		for i, err := range errs {
			var input *InputError
			if !errors.As(err, &input) || input.Field != tt.field {
				t.Errorf("call %d with %+v: %v; want an *InputError of %s", i, tt.cfg, err, tt.field)
			}
		}
		if len(s.owners) > 0 {
			t.Errorf("%+v: the store was asked", tt.cfg)
		}
	}
	lease, err := New(newScript(nil, nil), Config{Margin: maxTTL / 3}).Acquire(t.Context(), "a", Options{TTL: maxTTL})
	if err != nil {
		t.Fatal(err)
	}
	lease.Close()
}
