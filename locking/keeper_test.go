package locking

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// renewals is a Renewer whose answers a test chooses.
type renewals struct {
	answer func(ctx context.Context, call int, batch []Renewal) ([]RenewAnswer, error)

	mu    sync.Mutex
	sizes []int           // of the batches, in order
	at    []time.Duration // when they were sent, since start
	start time.Time

	renewed []Renewal
}

func (r *renewals) Renew(ctx context.Context, batch []Renewal) ([]RenewAnswer, error) {
	r.mu.Lock()
	r.sizes = append(r.sizes, len(batch))
	r.renewed = append(r.renewed, batch...)
	r.at = append(r.at, time.Since(r.start))
	call := len(r.sizes)
	r.mu.Unlock()
	return r.answer(ctx, call, batch)
}

func (r *renewals) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sizes)
}

// all answers every renewal of a batch alike.
func all(a RenewAnswer, batch []Renewal) []RenewAnswer {
	out := make([]RenewAnswer, len(batch))
	for i := range out {
		out[i] = a
	}
	return out
}

func healthy(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
	return all(Renewed, batch), nil
}

func down(context.Context, int, []Renewal) ([]RenewAnswer, error) {
	return nil, ErrUnreachable
}

// The times of these tests: margin 1 s is the default.
const (
	testTTL  = 15 * time.Second
	deadline = testTTL - time.Second - testTTL/100 // after Asked
)

func testKeeper(answer func(context.Context, int, []Renewal) ([]RenewAnswer, error)) (*Keeper, *renewals) {
	r := &renewals{answer: answer, start: time.Now()}
	return NewKeeper(r, KeeperConfig{}), r
}

func testGrant(name string, asked time.Time) Grant {
	return Grant{Name: name, Owner: "o-" + name, Token: 7, TTL: testTTL, Asked: asked}
}

// wantLost waits for the lease's context to end and checks when and why.
func wantLost(t *testing.T, l *Lease, start time.Time, after time.Duration) {
	t.Helper()
	<-l.Context().Done()
	if got := time.Since(start); got != after {
		t.Errorf("cancelled after %s; want exactly %s", got, after)
	}
	if err := context.Cause(l.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("cause %v; want ErrLeaseLost", err)
	}
	if l.Valid() || !l.Lost() {
		t.Errorf("a lost lease says valid %t, lost %t", l.Valid(), l.Lost())
	}
}

func TestKeeperRenewsAllInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		var leases []*Lease
		for i := range 100 {
			leases = append(leases, k.Hold(t.Context(), testGrant(string(rune('A'+i)), time.Now())))
			<-time.After(10 * time.Millisecond) // taken at different moments, within a second
		}
		<-time.After(testTTL)
		want := []int{100, 100, 100}
		r.mu.Lock()
		if len(r.sizes) != len(want) || r.sizes[0] != 100 || r.sizes[1] != 100 || r.sizes[2] != 100 {
			t.Errorf("batches of %v within %s; want %v: one every ttl/3", r.sizes, time.Since(r.start), want)
		}
		for i, at := range r.at {
			if due := time.Duration(i+1) * testTTL / 3; at != due {
				t.Errorf("call %d at %s; want %s", i+1, at, due)
			}
		}
		r.mu.Unlock()
		for _, l := range leases {
			if !l.Valid() {
				t.Errorf("%s is not valid though every renewal worked", l.Name())
			}
			l.Close()
		}
	})
}

func TestKeeperCancelsAtTheLocalDeadline(t *testing.T) {
	tests := map[string]func(context.Context, int, []Renewal) ([]RenewAnswer, error){
		"errors": down,
		"hangs until its context ends": func(ctx context.Context, _ int, _ []Renewal) ([]RenewAnswer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"answers too few": func(context.Context, int, []Renewal) ([]RenewAnswer, error) {
			return []RenewAnswer{}, nil
		},
		"does not know": func(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
			return make([]RenewAnswer, len(batch)), nil
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, r := testKeeper(answer)
				start := time.Now()
				l := k.Hold(t.Context(), testGrant("a", start))
				if got := l.Deadline().Sub(start); got != deadline {
					t.Errorf("deadline after %s; want %s", got, deadline)
				}
				wantLost(t, l, start, deadline)
				k.Wait()
				if r.calls() < 5 {
					t.Errorf("%d renewals before the deadline; want one retry after the other", r.calls())
				}
			})
		})
	}
	t.Run("hangs whatever its context says", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			never := make(chan struct{})
			k, _ := testKeeper(func(context.Context, int, []Renewal) ([]RenewAnswer, error) {
				<-never
				return nil, ErrUnreachable
			})
			start := time.Now()
			l := k.Hold(t.Context(), testGrant("a", start))
			wantLost(t, l, start, deadline)
			close(never) // a Renewer that never returns keeps the goroutine
			k.Wait()
		})
	})
}

func TestKeeperCountsFromBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := 700 * time.Millisecond
		k, _ := testKeeper(func(_ context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
			if call > 1 {
				return nil, ErrUnreachable
			}
			<-time.After(slow)
			return all(Renewed, batch), nil
		})
		asked := time.Now()
		<-time.After(400 * time.Millisecond) // the reply to the acquisition took its time
		l := k.Hold(t.Context(), testGrant("a", asked))
		// First renewal sent at asked + ttl/3, answered 0.7 s later.
		wantLost(t, l, asked, testTTL/3+deadline)
	})
}

func TestKeeperSurvivesABlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		k, r := testKeeper(func(ctx context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
			if up := time.Since(start) % testTTL; up > 4*time.Second && up < 12*time.Second {
				return nil, ErrUnreachable
			}
			return all(Renewed, batch), nil
		})
		l := k.Hold(t.Context(), testGrant("a", start))
		<-time.After(time.Hour)
		if !l.Valid() {
			t.Errorf("lost to blips of 8 s with a ttl of %s: %v", testTTL, context.Cause(l.Context()))
		}
		if n := r.calls(); n > 240*15 {
			t.Errorf("%d calls in an hour; a failed renewal must be paced", n)
		}
		l.Close()
	})
}

func TestKeeperGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(func(_ context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
			out := all(Renewed, batch)
			for i, r := range batch {
				if r.Name == "a" && call == 2 {
					out[i] = Gone
				}
			}
			return out, nil
		})
		start := time.Now()
		a, b := k.Hold(t.Context(), testGrant("a", start)), k.Hold(t.Context(), testGrant("b", start))
		wantLost(t, a, start, 2*testTTL/3)
		if !b.Valid() {
			t.Errorf("b ended with a: %v", context.Cause(b.Context()))
		}
		b.Close()
	})
}

// An answer that comes after the deadline must not bring the lease back.
func TestKeeperLostIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		k, _ := testKeeper(func(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
			<-release
			return all(Renewed, batch), nil
		})
		start := time.Now()
		l := k.Hold(t.Context(), testGrant("a", start))
		wantLost(t, l, start, deadline)
		close(release)
		synctest.Wait()
		if l.Valid() || !l.Lost() {
			t.Error("a late answer brought the lease back")
		}
	})
}

func TestKeeperLateGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		l := k.Hold(t.Context(), testGrant("a", time.Now().Add(-deadline)))
		wantLost(t, l, time.Now(), 0)
		synctest.Wait()
		if r.calls() != 0 || k.running {
			t.Errorf("a lease that is lost from the start is being kept: %d calls, loop running %t", r.calls(), k.running)
		}
	})
}
