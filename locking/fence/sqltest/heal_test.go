package sqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// effects are two ways to write one order under its fence, as a holder does it.
var effects = map[string]func(t *testing.T, d *database) func(lease *locking.Lease) error{
	"sql": func(t *testing.T, d *database) func(lease *locking.Lease) error {
		return func(lease *locking.Lease) error {
			return d.in(lease.Context(), nil, func(tx *sql.Tx) error {
				if err := d.guard.Check(lease.Context(), tx, lease.Name(), lease.Token()); err != nil {
					return err
				}
				return d.note(lease.Context(), tx, lease.Token())
			})
		}
	},
	"http": func(t *testing.T, d *database) func(lease *locking.Lease) error {
		return overHTTP(t, d)
	},
}

// overHTTP puts a service in front of the database, whose handler compares before
// the request is let in, and once more in the transaction of the effect.
func overHTTP(t *testing.T, d *database) func(lease *locking.Lease) error {
	t.Helper()
	const name = "order:42"
	server := httptest.NewServer(&fence.Handler{
		Store:    d.guard.Store(d.DB),
		Resource: func(*http.Request) string { return name },
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, _ := fence.TokenFrom(r.Context())
			err := d.in(r.Context(), nil, func(tx *sql.Tx) error {
				if err := d.guard.Check(r.Context(), tx, name, token); err != nil {
					return err
				}
				return d.note(r.Context(), tx, token)
			})
			if err != nil {
				http.Error(w, "not saved", http.StatusInternalServerError)
			}
		}),
	})
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &fence.Transport{}}
	return func(lease *locking.Lease) error {
		r, err := http.NewRequestWithContext(fence.WithLease(lease), http.MethodPut, server.URL, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := fence.Refusal(resp); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}

// The store of locks loses all it knew, and its clock goes back: its next token
// is smaller than one that the guard has seen. The guard refuses it, and its
// maximum heals the store.
func TestFreshHolderHeals(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for name, effect := range effects {
			t.Run(name, func(t *testing.T) {
				d.must(t, "DELETE FROM <t>_log")
				d.must(t, "DELETE FROM <t>")
				heals(t, d, effect(t, d))
			})
		}
	})
}

func heals(t *testing.T, d *database, save func(lease *locking.Lease) error) {
	t.Helper()
	server, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	ctx := t.Context()

	before := acquire(ctx, t, locker, locking.Options{})
	if err := save(before); err != nil {
		t.Fatal("the first holder:", err)
	}
	client.FlushAll(ctx)
	server.StepClock(-5 * time.Minute)

	fresh := acquire(ctx, t, locker, locking.Options{})
	if fresh.Token() >= before.Token() {
		t.Fatalf("token %d after %d: the store has not forgotten, so there is nothing to heal", fresh.Token(), before.Token())
	}
	err = save(fresh)
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != (fence.StaleError{Fence: "order:42", Token: fresh.Token(), Max: before.Token()}) {
		t.Fatalf("the fresh holder: %v", err)
	}
	if err := fresh.Release(ctx); err != nil {
		t.Fatal(err)
	}

	healed := acquire(ctx, t, locker, locking.Options{After: stale.Max})
	if err := save(healed); err != nil {
		t.Error("acquired again, as the error says:", err)
	}
	if err := save(before); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the first holder, which lost the lock and has not heard of it: %v", err)
	}
	if err := healed.Release(ctx); err != nil {
		t.Fatal(err)
	}
	next := acquire(ctx, t, locker, locking.Options{}) // the store has learnt it
	if err := save(next); err != nil {
		t.Error("the one after that, without After:", err)
	}
	if got, err := d.log(ctx); fmt.Sprint(got) != fmt.Sprint([]int64{before.Token(), healed.Token(), next.Token()}) {
		t.Errorf("effects %v, %v", got, err)
	}
	before.Close()
	next.Close()
}

func acquire(ctx context.Context, t *testing.T, locker *locking.Locker, o locking.Options) *locking.Lease {
	t.Helper()
	lease, err := locker.Acquire(ctx, "order:42", o)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}
