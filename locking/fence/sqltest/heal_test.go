package sqltest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestFreshHolderHeals: the store of locks loses all data, and its clock goes back, so that its
// next token is smaller than a token that the guard has seen. The guard refuses it, and its maximum
// heals the store.
func TestFreshHolderHeals(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		server, client := redistest.StartEmbedded(t)
		locker := redislock.New(client, redislock.Config{})
		defer locker.Close()
		acquire := func(o locking.Options) *locking.Lease {
			t.Helper()
			lease, err := locker.Acquire(t.Context(), "order:42", o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(lease.Close)
			return lease
		}
		save := func(lease *locking.Lease) error {
			return d.in(t.Context(), nil, func(tx *sql.Tx) error {
				if err := d.guard.Check(t.Context(), tx, lease.Name(), lease.Token()); err != nil {
					return err
				}
				return d.note(t.Context(), tx, lease.Token())
			})
		}

		before := acquire(locking.Options{})
		if err := save(before); err != nil {
			t.Fatal("the first holder:", err)
		}
		client.FlushAll(t.Context())
		server.StepClock(-5 * time.Minute)

		fresh := acquire(locking.Options{})
		if fresh.Token() >= before.Token() {
			t.Fatalf("token %d after %d: the store has not forgotten, so there is nothing to heal", fresh.Token(), before.Token())
		}
		var stale *fence.StaleError
		if err := save(fresh); !errors.As(err, &stale) || *stale != (fence.StaleError{Fence: "order:42", Token: fresh.Token(), Max: before.Token()}) {
			t.Fatalf("the fresh holder: %v", err)
		}
		if err := fresh.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		healed := acquire(locking.Options{After: stale.Max})
		if err := save(healed); err != nil {
			t.Error("acquired again, as the error says:", err)
		}
		if err := save(before); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the first holder, which lost the lock and does not know it: %v", err)
		}
		if err := healed.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := acquire(locking.Options{}) // the store has learnt it
		if err := save(next); err != nil {
			t.Error("the one after that, without After:", err)
		}
		if got, err := d.log(t.Context()); fmt.Sprint(got) != fmt.Sprint([]int64{before.Token(), healed.Token(), next.Token()}) {
			t.Errorf("effects %v, %v", got, err)
		}
	})
}
