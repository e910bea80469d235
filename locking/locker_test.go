package locking

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// script is a Driver that answers acquisitions and releases from a list, and
// then goes on with the last entry.
type script struct {
	renewals

	mu       sync.Mutex
	acquire  []error // nil: granted
	release  []error
	owners   []string // of the acquisitions, in order
	queued   bool     // a place in the line was asked for
	released []string
}

func (s *script) Acquire(ctx context.Context, r Request) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners = append(s.owners, r.Owner)
	s.queued = s.queued || r.Queue
	if err := nth(s.acquire, len(s.owners)); err != nil {
		return Grant{}, err
	}
	return Grant{Name: r.Name, Owner: r.Owner, Token: 7, TTL: r.TTL, Delay: r.Delay, Asked: time.Now()}, nil
}

func (s *script) Release(ctx context.Context, name, owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, owner)
	if err := ctx.Err(); err != nil {
		return err
	}
	return nth(s.release, len(s.released))
}

func (s *script) Owner(context.Context, string) (Ownership, error) { return Ownership{}, nil }

func (s *script) Revoke(context.Context, string, Token) error { return nil }

// change changes the answers, also while something is given back in the background.
func (s *script) change(acquire, release []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquire, s.release = acquire, release
}

func nth(list []error, n int) error {
	if len(list) == 0 {
		return nil
	}
	return list[min(n, len(list))-1]
}

func newScript(acquire, release []error) *script {
	return &script{renewals: renewals{answer: healthy}, acquire: acquire, release: release}
}

var heldByB = &HeldError{Name: "a", Owner: "b", Until: 10 * time.Second}

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

func TestAcquireWaitsAsLongAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript([]error{heldByB}, nil)
		start := time.Now()
		_, err := New(s, Config{}).Acquire(t.Context(), "a", Options{Wait: 5 * time.Second})
		var held *HeldError
		if !errors.As(err, &held) || held.Owner != "b" {
			t.Errorf("got %v; want a *HeldError", err)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("waited %s; want 5s", got)
		}
		if n := len(s.owners); n < 10 || n > 60 {
			t.Errorf("asked %d times in 5 s", n)
		}
	})
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
		l.background.wait()
		if len(s.released) != 3 || s.released[0] != s.owners[0] {
			t.Errorf("background releases %v of owner %s; want until one is answered", s.released, s.owners[0])
		}
		if _, err := l.Acquire(ctx, "a", Options{}); !errors.Is(err, stop) || len(s.owners) == 0 {
			t.Errorf("with a context that is over: %v", err)
		}
	})
}

func TestBackgroundReleaseIsBounded(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := New(newScript([]error{ErrUnreachable}, []error{ErrUnreachable}), Config{})
			if _, err := l.Acquire(t.Context(), "a", Options{}); !errors.Is(err, ErrUnreachable) {
				t.Fatal(err)
			}
			start := time.Now()
			if closed {
				l.Close()
			}
			l.background.wait()
			if got := time.Since(start); got > DefaultTTL || closed && got != 0 {
				t.Errorf("closed %t: tried for %s; want at most the ttl, and at once when closed", closed, got)
			}
		})
	}
}

func TestReleaseOfAKeepersLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(healthy)
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		if err := l.Release(t.Context()); err == nil || l.Valid() {
			t.Errorf("got %v, valid %t; want a closed lease and an error that says where to settle it", err, l.Valid())
		}
	})
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

func TestHeldErrorText(t *testing.T) {
	want := `lock "a": held by another (b, 10s left); wait for it with Options.Wait or try later`
	if got := heldByB.Error(); got != want {
		t.Errorf("got %s", got)
	}
	named := *heldByB
	named.Holder = "billing on host-3"
	if got := named.Error(); !strings.Contains(got, "(billing on host-3, b, 10s left)") {
		t.Errorf("got %s", got)
	}
	waited := *heldByB
	waited.Waited = time.Second
	if got := waited.Error(); !strings.Contains(got, "still held by another after waiting 1s") {
		t.Errorf("got %s", got)
	}
}
