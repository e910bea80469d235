package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/escapement/escapement/locking"
)

const (
	// MaxToken is the largest token: 2^53 - 1, the last whole number that Lua
	// and JSON carry exactly.
	MaxToken locking.Token = 1<<53 - 1

	// MaxName is how many bytes the name of a fence or of a job may have.
	MaxName = 512
)

// ErrStale is returned when a guard has seen a larger token. The error is a
// *StaleError, which says how large.
var ErrStale = errors.New("stale token")

// ErrBusy is returned by a Gate where as many wait as may wait. The token was
// noted: ask again with the same one.
var ErrBusy = errors.New("too many wait")

// StaleError says which token was refused, and why. It matches ErrStale.
type StaleError struct {
	Fence string
	Token locking.Token // the one that was refused
	Max   locking.Token // the largest that the guard has seen
}

// Error names the fence, both tokens and the next step.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence %q: %v %d: the guard has seen %d; somebody else has the lock, so stop. "+
		"If you have acquired it just now, release it and acquire it again with Options.After = %d", e.Fence, ErrStale, e.Token, e.Max, e.Max)
}

// Is reports whether target is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// InputError says which argument was refused, before anything was sent.
type InputError struct {
	Field string // what was refused: "token", "fence", "table", ...
	Why   string // what is wrong with it, and the limit
}

// Error names the field and the limit.
func (e *InputError) Error() string { return "fence: " + e.Field + " " + e.Why }

// Store keeps the largest token of each fence. All methods may be called from
// many goroutines.
type Store interface {
	// Check accepts the token and remembers it, or returns a *StaleError; any
	// other error means that nothing is known, and that nothing must be written.
	// Asking again with the same token is safe.
	Check(ctx context.Context, fence string, token locking.Token) error
}

// Gate is a Store that can also keep a fence shut until an effect is over.
type Gate interface {
	Store

	// Enter is Check for an effect that starts now and lasts until leave is
	// called. A larger token that comes meanwhile is remembered at once, ends
	// the context, with a *StaleError as its cause, and waits for leave. Enter
	// itself waits so for smaller ones that are inside, and returns ctx's cause
	// when that ends first. How many may wait has a bound: one more is refused with
	// an error that wraps ErrBusy. leave is nil when the error is not.
	Enter(ctx context.Context, fence string, token locking.Token) (inside context.Context, leave func(), err error)
}

// judge applies the rule.
func judge(fence string, token, stored locking.Token) error {
	if token < stored {
		return &StaleError{Fence: fence, Token: token, Max: stored}
	}
	return nil
}

// Valid returns nil, or an *InputError for the name or the token: a name has 1
// to MaxName bytes of printable UTF-8, a token lies between 1 and MaxToken.
func Valid(fence string, token locking.Token) error {
	if err := checkName("fence", fence); err != nil {
		return err
	}
	return checkToken(token)
}

func checkToken(token locking.Token) error {
	if token < 1 || token > MaxToken {
		return &InputError{"token", fmt.Sprintf("is %d; it lies between 1 and %d: use what Lease.Token or Run.Token returns", token, MaxToken)}
	}
	return nil
}

func checkName(field, name string) error {
	switch {
	case name == "":
		return &InputError{field, "has no name"}
	case len(name) > MaxName:
		return &InputError{field, fmt.Sprintf("has a name of %d bytes; use at most %d", len(name), MaxName)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return &InputError{field, fmt.Sprintf("has the name %q, which is not printable UTF-8", name)}
	}
	return nil
}

// ParseToken reads a token as the header carries it: 1 to 16 decimal digits, no
// zero in front, at most MaxToken. The error is an *InputError.
func ParseToken(s string) (locking.Token, error) {
	if len(s) > 16 {
		return 0, &InputError{"token", fmt.Sprintf("has %d characters; the largest is %d", len(s), MaxToken)}
	}
	token, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(token, 10) != s || token < 1 || token > MaxToken {
		return 0, &InputError{"token", fmt.Sprintf("%q is not a whole number from 1 to %d, in digits only", s, MaxToken)}
	}
	return token, nil
}
