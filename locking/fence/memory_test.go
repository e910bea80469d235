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
			t.Errorf("the context of the older one has cause %v", context.Cause(old))
		}
		if _, _, err := m.Enter(t.Context(), "a", 5); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the older one comes once more: %v", err)
		}
		leaveOld()
		synctest.Wait()
		if entered {
			t.Error("entered with a smaller token inside")
		}
		leaveSame()
		synctest.Wait()
		if !entered {
			t.Error("not let in when the last one had left")
		}
	})
}

// A fence with a waiting call is not forgotten, not even between the last call's leaving and the
// next call's entering.
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

// storm lets many goroutines write under one fence, with tokens in a random order, and returns an
// error when the writes are out of order.
func storm(seed uint64) error {
	m := fence.NewMemory(0)
	tokens := make([]locking.Token, 400) // from 1 to 60, each several times
	for i := range tokens {
		tokens[i] = 1 + locking.Token(i%60)
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	rnd.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
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
				_, leave, err := m.Enter(context.Background(), "a", token)
				if err != nil {
					if !errors.Is(err, fence.ErrStale) {
						mu.Lock()
						wrong = errors.Join(wrong, err)
						mu.Unlock()
					}
					continue
				}
				for range rnd.IntN(4) {
					runtime.Gosched() // a pause between the check and the write
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

func TestMemoryStorm(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		if err := storm(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestMemoryFollowsTheRule(t *testing.T) {
	ctx, s := t.Context(), fence.NewMemory(0)
	for i, c := range []struct {
		fence string
		token locking.Token
		max   locking.Token // 0: accepted
	}{
		{"a", 5, 0}, {"a", 5, 0}, {"a", 4, 5}, {"a", 5, 0}, {"a", 9, 0}, {"a", 5, 9}, {"a", 8, 9},
		{"b", 1, 0}, {"A", 1, 0}, {"b", 2, 0}, {"b", 1, 2},
		{"a", 1770000000000000, 0}, {"a", 1770000000000001, 0}, {"a", 1770000000000000, 1770000000000001},
		{"a", fence.MaxToken - 1, 0}, {"a", fence.MaxToken, 0}, {"a", fence.MaxToken - 1, fence.MaxToken}, {"a", 1, fence.MaxToken},
	} {
		err := s.Check(ctx, c.fence, c.token)
		var stale *fence.StaleError
		switch {
		case c.max == 0 && err != nil:
			t.Errorf("step %d: %d at %s is refused: %v", i, c.token, c.fence, err)
		case c.max > 0 && !errors.As(err, &stale):
			t.Errorf("step %d: %d at %s after %d: want it refused, got %v", i, c.token, c.fence, c.max, err)
		case c.max > 0 && *stale != fence.StaleError{Fence: c.fence, Token: c.token, Max: c.max}:
			t.Errorf("step %d: %+v, want a maximum of %d", i, *stale, c.max)
		}
	}
}

// TestWaitingIsBounded: only so many wait for one token. A request that has given up takes no room, and the waiters for an older
// token keep no newer one out.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fence.NewMemory(0)
		_, leave, err := m.Enter(t.Context(), "a", 5)
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 4*100)
		join := func(ctx context.Context, token locking.Token) { // as many as may wait
			for range 100 {
				go func() {
					_, leave, err := m.Enter(ctx, "a", token)
					if err == nil {
						leave()
					}
					answers <- err
				}()
			}
			synctest.Wait()
		}
		all := func(want error) {
			t.Helper()
			synctest.Wait()
			if n := len(answers); n != 100 {
				t.Fatalf("%d were answered; want %d: %v", n, 100, want)
			}
			for range 100 {
				if err := <-answers; !errors.Is(err, want) {
					t.Fatalf("got %v; want %v", err, want)
				}
			}
		}
		oneMore := func(token locking.Token, want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, _, err := m.Enter(ctx, "a", token); !errors.Is(err, want) {
				t.Fatalf("one more with token %d: %v; want %v", token, err, want)
			}
		}
		impatient, cancel := context.WithCancel(t.Context())
		join(impatient, 6)
		oneMore(6, fence.ErrBusy)
		cancel()
		all(context.Canceled)
		join(t.Context(), 6)
		join(t.Context(), 7)
		all(fence.ErrStale)
		oneMore(7, fence.ErrBusy)
		oneMore(8, context.DeadlineExceeded) // so it has waited
		all(fence.ErrStale)
		join(t.Context(), 8)
		leave()
		all(nil)
	})
}
