package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fence.NewMemory(2)
		ctx := t.Context()
		_, leave, err := m.Enter(ctx, "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Check(ctx, "b", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := m.Check(ctx, "c", 1); !errors.Is(err, fence.ErrFull) || !strings.Contains(err.Error(), "Forget") {
			t.Errorf("a third fence: %v", err)
		}
		if err := m.Check(ctx, "a", 2); err != nil {
			t.Error("a known fence in a full memory:", err)
		}
		if n := m.Forget(time.Now()); n != 1 {
			t.Errorf("forgot %d, want b only: a is in use", n)
		}
		leave()
		leave() // a second time does nothing
		if err := m.Check(ctx, "c", 1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n := m.Forget(time.Now()); n != 2 {
			t.Errorf("forgot %d, want a and c", n)
		}
	})
}

// A newer token is noted at once, ends the older one's context, and waits.
func TestEnterWaitsForOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fence.NewMemory(0)
		old, leaveOld, err := m.Enter(t.Context(), "a", 5)
		if err != nil {
			t.Fatal(err)
		}
		_, leaveSame, err := m.Enter(t.Context(), "a", 5)
		if err != nil {
			t.Fatal("an equal token must be let in at once:", err)
		}
		var entered bool
		go func() {
			_, leave, err := m.Enter(t.Context(), "a", 6)
			if err != nil {
				t.Error(err)
				return
			}
			entered = true
			leave()
		}()
		synctest.Wait()
		var stale *fence.StaleError
		if !errors.As(context.Cause(old), &stale) || stale.Token != 5 || stale.Max != 6 {
			t.Errorf("the older one was not told: %v", context.Cause(old))
		}
		if _, _, err := m.Enter(t.Context(), "a", 5); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the older one comes once more: %v", err)
		}
		leaveOld()
		synctest.Wait()
		if entered {
			t.Error("let in with a smaller token inside")
		}
		leaveSame()
		synctest.Wait()
		if !entered {
			t.Error("not let in when the last one had left")
		}
	})
}

func TestEnterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fence.NewMemory(0)
		_, leave, err := m.Enter(t.Context(), "a", 5)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := m.Enter(ctx, "a", 6); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "token 5 is still inside") {
			t.Errorf("gave up: %v", err)
		}
		if err := m.Check(ctx, "a", 5); !errors.Is(err, fence.ErrStale) {
			t.Errorf("whoever gave up had claimed: %v", err)
		}
	})
}

// Whoever waits and is overtaken is refused, not let in.
func TestEnterIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fence.NewMemory(0)
		_, leave, err := m.Enter(t.Context(), "a", 5)
		if err != nil {
			t.Fatal(err)
		}
		var errs [2]error
		for i := range errs {
			go func() {
				var leave func()
				if _, leave, errs[i] = m.Enter(t.Context(), "a", locking.Token(6+i)); errs[i] == nil {
					leave()
				}
			}()
			synctest.Wait()
		}
		if !errors.Is(errs[0], fence.ErrStale) {
			t.Errorf("overtaken: %v", errs[0])
		}
		leave()
		synctest.Wait()
		if errs[1] != nil {
			t.Error(errs[1])
		}
	})
}

// A fence that somebody waits for is not forgotten, not even between the last
// one's leaving and the next one's entering.
func TestForgetLeavesWaiting(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			m := fence.NewMemory(0)
			_, leave, err := m.Enter(t.Context(), "a", 5)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if _, _, err := m.Enter(t.Context(), "a", 6); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			leave()
			m.Forget(time.Now().Add(time.Hour))
			synctest.Wait()
			if err := m.Check(t.Context(), "a", 5); !errors.Is(err, fence.ErrStale) {
				t.Fatalf("token 5 while 6 is inside: %v", err)
			}
		})
	}
}

// enter is what a storm needs of a guard.
type enter func(ctx context.Context, token locking.Token) (leave func(), err error)

// storm lets many goroutines write under one fence, with tokens in a random
// order, and returns what is wrong with the order of the writes.
func storm(seed uint64, in enter) error {
	tokens := shuffled(seed, 400, 60)
	var (
		mu       sync.Mutex
		wrong    error
		last     locking.Token
		accepted int
		wg       sync.WaitGroup
	)
	work := make(chan locking.Token)
	for w := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			for token := range work {
				leave, err := in(context.Background(), token)
				if err != nil {
					if !errors.Is(err, fence.ErrStale) {
						mu.Lock()
						wrong = errors.Join(wrong, err)
						mu.Unlock()
					}
					continue
				}
				for range rnd.IntN(4) {
					runtime.Gosched() // standing still between the check and the write
				}
				mu.Lock()
				if token < last {
					wrong = errors.Join(wrong, fmt.Errorf("token %d wrote after %d", token, last))
				}
				last = token
				accepted++
				mu.Unlock()
				leave()
			}
		})
	}
	for _, token := range tokens {
		work <- token
	}
	close(work)
	wg.Wait()
	if last != 60 || accepted == 0 {
		wrong = errors.Join(wrong, fmt.Errorf("%d writes, the last with token %d, want 60", accepted, last))
	}
	return wrong
}

func memoryEnter() enter {
	m := fence.NewMemory(0)
	return func(ctx context.Context, token locking.Token) (func(), error) {
		_, leave, err := m.Enter(ctx, "a", token)
		return leave, err
	}
}

func TestMemoryStorm(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		if err := storm(seed, memoryEnter()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestStormCatchesMutants(t *testing.T) {
	for name, mutant := range map[string]func() enter{
		"checks and lets go": func() enter {
			m := fence.NewMemory(0)
			return func(ctx context.Context, token locking.Token) (func(), error) {
				return func() {}, m.Check(ctx, "a", token)
			}
		},
		"refuses nothing": func() enter {
			return func(context.Context, locking.Token) (func(), error) { return func() {}, nil }
		},
		"locks and compares nothing": func() enter {
			var mu sync.Mutex
			return func(context.Context, locking.Token) (func(), error) { mu.Lock(); return mu.Unlock, nil }
		},
	} {
		caught := false
		for seed := range uint64(50) {
			if caught = storm(seed, mutant()) != nil; caught {
				break
			}
		}
		if !caught {
			t.Errorf("a guard that %q passes 50 storms", name)
		}
	}
}
