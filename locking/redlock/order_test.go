package redlock

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// A client that ignores its context does not delay Bootstrap.
func TestBootstrapOfHungClient(t *testing.T) {
	for _, hung := range []string{"node", "repair"} {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			defer close(hang)
			clients := fakeClients(func(m int, script string) (any, error) {
				if m == 0 && script == hung {
					<-hang
				}
				if script == "node" {
					return []any{fmt.Sprint("run", m), int64(0), "0", "1000", int64(0)}, nil
				}
				return int64(1), nil
			})
			done := make(chan error, 1)
			go func() { done <- Bootstrap(t.Context(), clients, Config{}) }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s: %v; two of three are enough", hung, err)
				}
			case <-time.After(2*bootstrapTimeout + time.Millisecond):
				t.Errorf("%s: Bootstrap still waits for one of three masters", hung)
			}
		})
	}
}

// TestHungClientIsBounded: a client that ignores its context delays no other call, and
// at some point is not asked any more.
func TestHungClientIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		hang := make(chan struct{})
		d := fakeDriver(t, func(m int, script string) (any, error) {
			if m == 0 {
				<-hang
			}
			if script == "acquire" {
				return reply(m, codePromised, "7", 1000), nil
			}
			return int64(1), nil
		})
		begun := time.Now()
		for i := range maxCalls + 50 {
			r := locking.Request{Name: "a", Owner: fmt.Sprint(i), TTL: time.Second}
			if _, err := d.Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := d.Release(t.Context(), r.Name, r.Owner); err != nil {
				t.Fatal(err)
			}
		}
		if spent := time.Since(begun); spent > 0 {
			t.Errorf("the hung client held others up for %s", spent)
		}
		if n := runtime.NumGoroutine() - before; n > maxCalls+20 {
			t.Errorf("%d goroutines wait for the hung master; want %d at most", n, maxCalls)
		}
		close(hang)
	})
}
