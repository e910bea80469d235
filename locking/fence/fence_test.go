package fence_test

import (
	"errors"
	"fmt"
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
	const want = `save: fence "order:42": stale token 7: the guard has seen 9; another holder has the lock, so stop. ` +
		`If you have acquired it just now, release it and acquire it again with Options.After = 9`
	if err.Error() != want || !errors.Is(err, fence.ErrStale) || errors.Is(err, locking.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// inputs are refused by every guard, before it calls its store.
var inputs = []struct {
	fence string
	token locking.Token
	want  string
}{
	{"", 1, "fence: fence has no name"},
	{strings.Repeat("x", 512+1), 1, "fence: fence has a name of 513 bytes; use at most 512"},
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
	if err := m.Check(t.Context(), strings.Repeat("x", 512), fence.MaxToken); err != nil {
		t.Error("what was refused took room, or the limit is not the limit:", err)
	}
}
