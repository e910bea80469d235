package sqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

// TestCheckFollowsTheRule walks the guard through the rule, one transaction for each step.
func TestCheckFollowsTheRule(t *testing.T) {
	onEach(t, followsTheRule)
}

func followsTheRule(t *testing.T, d *database) {
	const odd = `it's "a"; -- ü`
	for i, s := range []struct {
		fence string
		token locking.Token
		max   locking.Token // 0: accepted
	}{
		{"a", 5, 0}, {"a", 5, 0}, {"a", 4, 5}, {"a", 5, 0}, {"a", 9, 0}, {"a", 5, 9}, {"a", 8, 9}, {"a", 10, 0}, {"a", 9, 10},
		{"b", 1, 0}, {"A", 1, 0}, {"a ", 1, 0}, {odd, 3, 0}, {odd, 2, 3},
		{"a", 1770000000000000, 0}, {"a", 1770000000000001, 0}, {"a", 1770000000000000, 1770000000000001},
		{"a", fence.MaxToken - 1, 0}, {"a", fence.MaxToken, 0}, {"a", fence.MaxToken - 1, fence.MaxToken}, {"a", 1, fence.MaxToken},
		{strings.Repeat("x", 512), 1, 0},
	} {
		err := d.in(t.Context(), nil, func(tx *sql.Tx) error { return d.guard.Check(t.Context(), tx, s.fence, s.token) })
		var stale *fence.StaleError
		switch {
		case s.max == 0 && err != nil:
			t.Fatalf("step %d: %d is refused: %v", i, s.token, err)
		case s.max > 0 && (!errors.As(err, &stale) || *stale != fence.StaleError{Fence: s.fence, Token: s.token, Max: s.max}):
			t.Fatalf("step %d: %d after %d: want it refused, got %v", i, s.token, s.max, err)
		}
	}
}

// TestCheckRollsBack: a claim goes with its transaction.
func TestCheckRollsBack(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		oops := errors.New("oops")
		check := func(token locking.Token, end error) error {
			return d.in(t.Context(), nil, func(tx *sql.Tx) error {
				return errors.Join(d.guard.Check(t.Context(), tx, "rolled back", token), end)
			})
		}
		if err := check(9, oops); !errors.Is(err, oops) || errors.Is(err, fence.ErrStale) {
			t.Fatal(err)
		}
		if err := check(5, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestNewerWaits has an old holder pause between its check and its write while a new one comes, and compares the order of
// the writes.
func TestNewerWaits(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		visit := func(token locking.Token, pause func()) error {
			return d.in(ctx, nil, func(tx *sql.Tx) error {
				if err := d.guard.Check(ctx, tx, "waits", token); err != nil {
					return err
				}
				pause()
				return d.note(ctx, tx, token)
			})
		}
		newer := make(chan error, 1)
		old := visit(2, func() {
			over := make(chan struct{})
			go func() {
				newer <- visit(3, func() {})
				close(over)
			}()
			select {
			case <-over:
			case <-d.waits(ctx):
			}
		})
		if err := errors.Join(old, <-newer, ordered(ctx, d, 3)); err != nil {
			t.Error(err)
		}
	})
}

// ordered wants the log's tokens not to fall, and the last to be this one.
func ordered(ctx context.Context, d *database, last locking.Token) error {
	tokens, err := d.log(ctx)
	if err != nil {
		return err
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] < tokens[i-1] {
			return fmt.Errorf("write %d has token %d, after %d", i, tokens[i], tokens[i-1])
		}
	}
	if len(tokens) == 0 || tokens[len(tokens)-1] != last {
		return fmt.Errorf("%d writes, the last not with token %d: %v", len(tokens), last, tokens)
	}
	return nil
}

// storm lets twelve goroutines write with shuffled tokens. A quarter of the
// transactions is rolled back at the end.
func storm(ctx context.Context, d *database, o *sql.TxOptions, seed uint64) error {
	const most = 40
	rnd := rand.New(rand.NewPCG(seed, 0))
	tokens := make([]locking.Token, 0, 6*most+1)
	for i := range 6 * most {
		tokens = append(tokens, 1+locking.Token(i/6))
	}
	for part := range slices.Chunk(tokens, 24) { // shuffled among near ones, so that many are accepted
		rnd.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	tokens = append(tokens, most) // comes alone, and is not rolled back

	oops := errors.New("oops")
	var mu sync.Mutex
	var wrong error
	work := make(chan int)
	var wg sync.WaitGroup
	write := func(i int) {
		err := d.in(ctx, o, func(tx *sql.Tx) error {
			if err := d.guard.Check(ctx, tx, "storm", tokens[i]); err != nil {
				return err
			}
			if i%3 == 0 {
				time.Sleep(time.Duration(i%5) * time.Millisecond) // pauses after the check
			}
			if err := d.note(ctx, tx, tokens[i]); err != nil {
				return err
			}
			if i%4 == 0 && i < len(tokens)-1 {
				return oops
			}
			return nil
		})
		if err == nil || errors.Is(err, oops) || errors.Is(err, fence.ErrStale) || o != nil && again(err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		wrong = errors.Join(wrong, err)
	}
	for range 12 {
		wg.Go(func() {
			for i := range work {
				write(i)
			}
		})
	}
	for i := range len(tokens) - 1 {
		work <- i
	}
	close(work)
	wg.Wait()
	write(len(tokens) - 1)
	return errors.Join(wrong, ordered(ctx, d, most))
}

// again reports whether err is PostgreSQL's request to run the transaction again.
func again(err error) bool {
	return strings.Contains(err.Error(), "could not serialize access") || strings.Contains(err.Error(), "deadlock detected")
}

func TestStorm(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			onEach(t, func(t *testing.T, d *database) {
				var o *sql.TxOptions
				if level != sql.LevelDefault && d.dialect == fence.Postgres {
					o = &sql.TxOptions{Isolation: level} // SQLite has one level
				}
				seed := rand.Uint64()
				if err := storm(t.Context(), d, o, seed); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			})
		})
	}
}
