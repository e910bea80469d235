package locking

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
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

// script is a Driver that answers acquisitions and releases from a list, and
// then goes on with the last entry.
type script struct {
	renewals

	mu       sync.Mutex
	acquire  []error // nil: granted
	release  []error
	owners   []string // of the acquisitions, in order
	queued   bool     // a request had Queue set
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

// change replaces the answers, also while a background release is under way.
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

// hung is a store that does not answer, once it hangs.
type hung struct {
	*script
	hangs atomic.Bool
}

func (h *hung) wait(ctx context.Context) error {
	if !h.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hung) Acquire(ctx context.Context, r Request) (Grant, error) {
	if err := h.wait(ctx); err != nil {
		return Grant{}, err
	}
	return h.script.Acquire(ctx, r)
}

func (h *hung) Release(ctx context.Context, _, _ string) error { return h.wait(ctx) }

func (h *hung) Owner(ctx context.Context, _ string) (Ownership, error) {
	return Ownership{}, h.wait(ctx)
}

func mustHold(t *testing.T, l *Locker, name string, o Options) *Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// manyHeld acquires n locks.
func manyHeld(t *testing.T, l *Locker, n int, o Options) (leases []*Lease) {
	t.Helper()
	for range n {
		lease, err := l.Acquire(t.Context(), "a", o)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	return leases
}
