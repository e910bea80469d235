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

// check is the one thing that a broken guard does differently.
type check func(ctx context.Context, tx *sql.Tx, name string, token locking.Token) error

// follows walks a guard through the rule, one transaction for each step.
func follows(ctx context.Context, d *database, c check) error {
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
		{strings.Repeat("x", fence.MaxName), 1, 0},
	} {
		err := d.in(ctx, nil, func(tx *sql.Tx) error { return c(ctx, tx, s.fence, s.token) })
		var stale *fence.StaleError
		switch {
		case s.max == 0 && err != nil:
			return fmt.Errorf("step %d: %d is refused: %w", i, s.token, err)
		case s.max > 0 && (!errors.As(err, &stale) || *stale != fence.StaleError{Fence: s.fence, Token: s.token, Max: s.max}):
			return fmt.Errorf("step %d: %d after %d: want it refused, got %w", i, s.token, s.max, err)
		}
	}
	return nil
}

// rollsBack wants a claim to go with its transaction.
func rollsBack(ctx context.Context, d *database, c check) error {
	oops := errors.New("oops")
	err := d.in(ctx, nil, func(tx *sql.Tx) error {
		if err := c(ctx, tx, "rolled back", 9); err != nil {
			return err
		}
		return oops
	})
	if !errors.Is(err, oops) {
		return err
	}
	return d.in(ctx, nil, func(tx *sql.Tx) error { return c(ctx, tx, "rolled back", 5) })
}

// newerWaits has an old holder stand still between its check and its write while
// a new one comes, and looks at the order of the writes.
func newerWaits(ctx context.Context, d *database, c check) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	visit := func(token locking.Token, pause func()) error {
		return d.in(ctx, nil, func(tx *sql.Tx) error {
			if err := c(ctx, tx, "waits", token); err != nil {
				return err
			}
			pause()
			return d.note(ctx, tx, token)
		})
	}
	if err := visit(1, func() {}); err != nil {
		return err
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
	if err := errors.Join(old, <-newer); err != nil {
		return err
	}
	return ordered(ctx, d, 3)
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
func storm(ctx context.Context, d *database, o *sql.TxOptions, seed uint64, c check) error {
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
			if err := c(ctx, tx, "storm", tokens[i]); err != nil {
				return err
			}
			if i%3 == 0 {
				time.Sleep(time.Duration(i%5) * time.Millisecond) // stands still after the check
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

// again reports whether PostgreSQL says to run the transaction again.
func again(err error) bool {
	return strings.Contains(err.Error(), "could not serialize access") || strings.Contains(err.Error(), "deadlock detected")
}

func TestCheck(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for name, c := range cases {
			if err := c(t.Context(), d, d.guard.Check); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// cases are what a guard must pass, and what each broken one must fail.
var cases = map[string]func(ctx context.Context, d *database, c check) error{
	"follows the rule": follows, "rolls back": rollsBack, "a newer one waits": newerWaits,
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
				if err := storm(t.Context(), d, o, seed, d.guard.Check); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			})
		})
	}
}

// mutants are broken guards, and the case that must catch each.
func mutants(d *database) map[string]struct {
	check  check
	caught string
} {
	larger, upsert := "GREATEST", "INSERT INTO <t> AS f (fence, token, seen) VALUES (?, ?, 0) ON CONFLICT (fence) DO UPDATE SET "
	if d.dialect == fence.SQLite {
		larger = "max"
	}
	// claim runs an upsert that returns a row, or none when it refuses.
	claim := func(set string) check {
		return func(ctx context.Context, tx *sql.Tx, name string, token locking.Token) error {
			var stored locking.Token
			err := tx.QueryRowContext(ctx, d.say(upsert+set+" RETURNING token"), name, token).Scan(&stored)
			if errors.Is(err, sql.ErrNoRows) {
				err = tx.QueryRowContext(ctx, d.say("SELECT token FROM <t> WHERE fence = ?"), name).Scan(&stored)
				return errors.Join(err, &fence.StaleError{Fence: name, Token: token, Max: stored})
			}
			if err == nil && stored > token {
				return &fence.StaleError{Fence: name, Token: token, Max: stored}
			}
			return err
		}
	}
	return map[string]struct {
		check  check
		caught string
	}{
		"< instead of <=": {claim("token = excluded.token WHERE f.token < excluded.token"), "follows the rule"},
		"unconditional":   {claim("token = excluded.token"), "follows the rule"},
		"keeps the first": {claim("token = f.token WHERE f.token <= excluded.token"), "follows the rule"},
		"one fence for all": {func(ctx context.Context, tx *sql.Tx, _ string, token locking.Token) error {
			return d.guard.Check(ctx, tx, "all", token)
		}, "follows the rule"},
		"outside of the transaction": {func(ctx context.Context, _ *sql.Tx, name string, token locking.Token) error {
			return d.guard.Store(d.DB).Check(ctx, name, token)
		}, "a newer one waits"},
		"outside, and so not rolled back": {func(ctx context.Context, _ *sql.Tx, name string, token locking.Token) error {
			return d.guard.Store(d.DB).Check(ctx, name, token)
		}, "rolls back"},
		"reads and locks nothing": {func(ctx context.Context, _ *sql.Tx, name string, token locking.Token) error {
			var stored locking.Token
			err := d.QueryRowContext(ctx, d.say("SELECT token FROM <t> WHERE fence = ?"), name).Scan(&stored)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if stored > token {
				return &fence.StaleError{Fence: name, Token: token, Max: stored}
			}
			_, err = d.ExecContext(ctx, d.say(upsert+"token = "+larger+"(f.token, excluded.token)"), name, token)
			return err
		}, "a newer one waits"},
	}
}

func TestCasesCatchMutants(t *testing.T) {
	for _, kind := range databases {
		for name, m := range mutants(&database{}) {
			t.Run(kind.name+"/"+name, func(t *testing.T) {
				d := kind.open(t)
				err := cases[m.caught](t.Context(), d, mutants(d)[name].check)
				if err == nil {
					t.Errorf("passes %q", m.caught)
				}
				t.Log(err)
			})
		}
	}
}

// The storm must notice a guard that compares and then lets go.
func TestStormCatchesMutants(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		for seed := range uint64(20) {
			d.must(t, "DELETE FROM <t>_log")
			d.must(t, "DELETE FROM <t>")
			if err := storm(t.Context(), d, nil, seed, mutants(d)["reads and locks nothing"].check); err != nil {
				t.Logf("seed %d: %v", seed, err)
				return
			}
		}
		t.Error("20 storms pass")
	})
}
