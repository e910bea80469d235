package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
)

func TestParseToken(t *testing.T) {
	for text, want := range map[string]locking.Token{
		"1": 1, "42": 42, "1770000000000001": 1770000000000001, "9007199254740991": fence.MaxToken,
		"": 0, "0": 0, "-1": 0, "+1": 0, "01": 0, " 1": 0, "1 ": 0, "1,2": 0, "1.0": 0, "1e3": 0, "0x1": 0, "1_000": 0, "١": 0,
		"9007199254740992": 0, "9999999999999999": 0, "10000000000000000": 0, strings.Repeat("9", 1<<20): 0,
	} {
		got, err := fence.ParseToken(text)
		var input *fence.InputError
		if got != want || (err == nil) != (want > 0) || err != nil && !errors.As(err, &input) {
			t.Errorf("%.20q: %d, %v; want %d", text, got, err, want)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("%.20q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestStaleErrorSaysWhatNext(t *testing.T) {
	err := fmt.Errorf("save: %w", &fence.StaleError{Fence: "order:42", Token: 7, Max: 9})
	const want = `save: fence "order:42": stale token 7: the guard has seen 9; somebody else has the lock, so stop. ` +
		`If you have acquired it just now, release it and acquire it again with Options.After = 9`
	if err.Error() != want || !errors.Is(err, fence.ErrStale) || errors.Is(err, locking.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// inputs are what every guard refuses before it asks its store.
var inputs = []struct {
	fence string
	token locking.Token
	want  string
}{
	{"", 1, "fence: fence has no name"},
	{strings.Repeat("x", fence.MaxName+1), 1, "fence: fence has a name of 513 bytes; use at most 512"},
	{"a\x00b", 1, `fence: fence has the name "a\x00b", which is not printable UTF-8`},
	{"\xff", 1, `fence: fence has the name "\xff", which is not printable UTF-8`},
	{"a", 0, "fence: token is 0; it lies between 1 and 9007199254740991"},
	{"a", -1, "fence: token is -1; it lies"},
	{"a", fence.MaxToken + 1, "fence: token is 9007199254740992; it lies"},
}

func TestInputs(t *testing.T) {
	m := fence.NewMemory(1)
	for _, c := range inputs {
		_, _, entered := m.Enter(t.Context(), c.fence, c.token)
		for _, err := range []error{fence.Valid(c.fence, c.token), m.Check(t.Context(), c.fence, c.token), entered} {
			var input *fence.InputError
			if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%.20q, %d: %v", c.fence, c.token, err)
			}
		}
	}
	if err := m.Check(t.Context(), strings.Repeat("x", fence.MaxName), fence.MaxToken); err != nil {
		t.Error("what was refused took room, or the limit is not the limit:", err)
	}
}

// follows walks a store through the rule and says where it leaves it.
func follows(ctx context.Context, s fence.Store) error {
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
			return fmt.Errorf("step %d: %d at %s is refused: %w", i, c.token, c.fence, err)
		case c.max > 0 && !errors.As(err, &stale):
			return fmt.Errorf("step %d: %d at %s after %d: want it refused, got %w", i, c.token, c.fence, c.max, err)
		case c.max > 0 && *stale != fence.StaleError{Fence: c.fence, Token: c.token, Max: c.max}:
			return fmt.Errorf("step %d: %+v, want a maximum of %d", i, *stale, c.max)
		}
	}
	return nil
}

func TestMemoryFollowsTheRule(t *testing.T) {
	if err := follows(t.Context(), fence.NewMemory(0)); err != nil {
		t.Error(err)
	}
}

// checkFunc is a Store made of its one method.
type checkFunc func(ctx context.Context, name string, token locking.Token) error

func (f checkFunc) Check(ctx context.Context, name string, token locking.Token) error {
	return f(ctx, name, token)
}

func TestRuleCatchesMutants(t *testing.T) {
	for name, mutant := range map[string]func(stored map[string]locking.Token, name string, token locking.Token) bool{
		"refuses equal tokens": func(s map[string]locking.Token, n string, token locking.Token) bool { return token <= s[n] },
		"refuses nothing":      func(map[string]locking.Token, string, locking.Token) bool { return false },
		"one fence for all":    func(s map[string]locking.Token, _ string, token locking.Token) bool { return token < s["a"] },
		"compares as 32-bit float": func(s map[string]locking.Token, n string, token locking.Token) bool {
			return float32(token) < float32(s[n])
		},
		"compares as text": func(s map[string]locking.Token, n string, token locking.Token) bool {
			return fmt.Sprint(token) < fmt.Sprint(s[n])
		},
		"remembers the last": func(s map[string]locking.Token, n string, token locking.Token) bool {
			defer func() { s[n] = token }()
			return token < s[n]
		},
	} {
		stored := map[string]locking.Token{}
		err := follows(t.Context(), checkFunc(func(_ context.Context, n string, token locking.Token) error {
			if highest := stored[n]; mutant(stored, n, token) {
				return &fence.StaleError{Fence: n, Token: token, Max: highest}
			}
			stored[n] = max(token, stored[n])
			return nil
		}))
		if err == nil {
			t.Errorf("a guard that %q passes", name)
		}
	}
}

// shuffled returns n tokens from 1 to most, each several times, in an order that
// follows from the seed.
func shuffled(seed uint64, n, most int) []locking.Token {
	rnd := rand.New(rand.NewPCG(seed, 0))
	tokens := make([]locking.Token, n)
	for i := range tokens {
		tokens[i] = 1 + locking.Token(i%most)
	}
	rnd.Shuffle(n, func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
	return tokens
}
