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
	// MaxToken is the largest token: 2^53 - 1, the largest number up to which Lua and JSON carry whole numbers
	// exactly.
	MaxToken locking.Token = 1<<53 - 1

	// maxName bounds the name of a fence or of a job, in bytes.
	maxName = 512
)

// ErrStale is returned when a guard has seen a larger token. The error is a *StaleError with that token.
var ErrStale = errors.New("stale token")

// ErrBusy is returned by a Gate with too many waiters. The token was stored: try again with the same one.
var ErrBusy = errors.New("too many requests wait")

// StaleError is a token that a guard refused. It matches ErrStale.
type StaleError struct {
	Fence string        // the name of the fence
	Token locking.Token // the refused one
	Max   locking.Token // the largest that the guard has seen
}

// Error names the fence, both tokens and the next step.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence %q: %v %d: the guard has seen %d; another holder has the lock, so stop. "+
		"If you have acquired it just now, release it and acquire it again with Options.After = %d", e.Fence, ErrStale, e.Token, e.Max, e.Max)
}

// Is reports whether target is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// InputError is an argument that was refused before anything was sent.
type InputError struct {
	Field string // the argument: "token", "fence", "table", ...
	Why   string // the fault, and the limit
}

// Error names the field and the limit.
func (e *InputError) Error() string { return "fence: " + e.Field + " " + e.Why }

// Store keeps the largest token of each fence. All methods may be called from many goroutines.
type Store interface {
	// Check accepts the token and stores it, or returns a *StaleError. With any other error it is unknown whether
	// the token was stored, and the caller must not write. To repeat Check with the same token is safe.
	Check(ctx context.Context, fence string, token locking.Token) error
}

// Gate is a Store that admits the effects of one token at a time.
type Gate interface {
	Store

	// Enter is Check for an effect that lasts from now until leave is called. It waits for effects with smaller
	// tokens to leave. A larger token that comes during the effect is stored at once, ends the context inside
	// with a *StaleError as its cause, and waits for leave.
	//
	// The error is ctx's cause when ctx ends before, and wraps ErrBusy when too many wait. leave is nil when
	// there is an error.
	Enter(ctx context.Context, fence string, token locking.Token) (inside context.Context, leave func(), err error)
}

// compare applies the rule.
func compare(fence string, token, stored locking.Token) error {
	if token < stored {
		return &StaleError{Fence: fence, Token: token, Max: stored}
	}
	return nil
}

// Valid returns nil, or an *InputError for the name or the token. A name has 1 to 512 bytes of printable UTF-8, a
// token is 1 to MaxToken.
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
		return &InputError{field, "has no name; use 1 to 512 bytes of printable UTF-8"}
	case len(name) > maxName:
		return &InputError{field, fmt.Sprintf("has a name of %d bytes; use at most %d", len(name), maxName)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return &InputError{field, fmt.Sprintf("has the name %q, which is not printable UTF-8", name)}
	}
	return nil
}

// ParseToken converts a token in decimal digits, as TokenHeader carries it: no leading zero, at most MaxToken. The
// error is an *InputError.
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
