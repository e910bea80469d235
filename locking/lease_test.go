package locking

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestExtendAnswers(t *testing.T) {
	broken := errors.New("WRONGTYPE")
	tests := map[string]struct {
		answers []RenewAnswer
		err     error
		want    error
		lost    bool
	}{
		"renewed":     {answers: []RenewAnswer{Renewed}},
		"gone":        {answers: []RenewAnswer{Gone}, want: ErrLost, lost: true},
		"unknown":     {answers: []RenewAnswer{Unknown}, want: ErrUnreachable},
		"unreachable": {err: ErrUnreachable, want: ErrUnreachable},
		"timed out":   {err: context.DeadlineExceeded, want: ErrUnreachable},
		"refused":     {err: broken, want: broken},
		"no answer":   {answers: []RenewAnswer{}, want: ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(nil, nil)
				l := New(s, Config{})
				defer l.Close()
				lease := mustHold(t, l, "a", Options{Fixed: true})
				defer lease.Close()
				before := lease.Deadline()
				<-time.After(time.Second)
				s.answer = func(context.Context, int, []Renewal) ([]RenewAnswer, error) { return tt.answers, tt.err }
				if err := lease.Extend(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("got %v; want %v", err, tt.want)
				}
				if moved := lease.Deadline().Sub(before); moved != 0 && tt.want != nil || moved != time.Second && tt.want == nil {
					t.Errorf("the deadline moved by %s", moved)
				}
				if lease.Lost() != tt.lost {
					t.Errorf("lost %t; want %t", lease.Lost(), tt.lost)
				}
			})
		})
	}
}

// The loop's renewal and Extend may be under way together.
func TestOlderAnswerMovesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, nil)
		s.answer = func(_ context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
			if call == 1 { // the loop's, sent after 5 s
				<-time.After(2 * time.Second)
			}
			return all(Renewed, batch), nil
		}
		lease := mustHold(t, New(s, Config{CallTimeout: 4 * time.Second}), "a", Options{})
		defer lease.Close()
		<-time.After(6 * time.Second)
		if err := lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := lease.Deadline()
		<-time.After(1500 * time.Millisecond)
		if got := lease.Deadline(); !got.Equal(want) {
			t.Errorf("the older answer moved the deadline by %s", got.Sub(want))
		}
	})
}

// TestDo: a panic releases the lock, and the error shows whether the function ran.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, nil)
		l := New(s, Config{})
		defer l.Close()
		nothing := func(context.Context, *Lease) error { return nil }
		func() {
			defer func() {
				if recover() == nil || len(s.released) != 1 {
					t.Error("the panic was swallowed, or the lock not released")
				}
			}()
			_ = l.Do(t.Context(), "a", Options{}, func(context.Context, *Lease) error { panic("oh") })
		}()
		for _, tt := range []struct {
			acquire, release error
			want             error
			ran              bool
		}{
			{acquire: heldByB, want: ErrHeld},
			{acquire: ErrUnreachable, want: ErrUnreachable},
			{release: ErrUnreachable, want: ErrUnreachable, ran: true},
		} {
			s.change([]error{tt.acquire}, []error{tt.release})
			if err := l.Do(t.Context(), "a", Options{}, nothing); !errors.Is(err, tt.want) || errors.Is(err, ErrNotReleased) != tt.ran {
				t.Errorf("%+v: %v; want %v, and ErrNotReleased: %t", tt, err, tt.want, tt.ran)
			}
		}
	})
}

// The store stops answering while f runs, and does not answer the release.
func TestDoLosesItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, []error{ErrUnreachable})
		s.answer = down
		l := New(s, Config{})
		defer l.Close()
		err := l.Do(t.Context(), "a", Options{}, func(ctx context.Context, _ *Lease) error {
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, ErrLost) || !errors.Is(err, ErrUnreachable) || !errors.Is(err, ErrNotReleased) {
			t.Errorf("got %v; want ErrLost, ErrUnreachable and ErrNotReleased", err)
		}
	})
}

// The end of a fixed lease at its time is no error; an earlier loss is one.
func TestFixedLeaseEndsWithoutAnError(t *testing.T) {
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := newScript(nil, nil)
			if gone {
				s.answer = func(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) { return all(Gone, batch), nil }
			}
			l := New(s, Config{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			defer l.Close()
			lease, err := l.Acquire(t.Context(), "a", Options{Fixed: true})
			if err != nil {
				t.Fatal(err)
			}
			if gone {
				_ = lease.Extend(t.Context()) // returns ErrLost
			}
			<-lease.Context().Done()
			synctest.Wait()
			text := out.String()
			if failed := strings.Contains(text, "level=ERROR"); failed != gone || !gone && !strings.Contains(text, "level=DEBUG msg=\"fixed lease is over\" name=a") {
				t.Errorf("gone %t, the log says:\n%s", gone, text)
			}
			if cause := context.Cause(lease.Context()); !errors.Is(cause, ErrLeaseLost) || !gone && !strings.Contains(cause.Error(), "its fixed time is over") {
				t.Errorf("gone %t: %v", gone, cause)
			}
			if !lease.Lost() {
				t.Error("it ended before it was closed, and is not lost")
			}
		})
	}
}
