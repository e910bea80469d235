package main

import (
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

// The exit codes; doc.go has their meaning.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitUnreachable = 6
	exitRunFailed   = 7
)

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errAwaited is returned when the run that jobs run --wait waited for did not succeed.
var errAwaited = errors.New("the run did not succeed")

// exitCode names an error by a number that scripts can tell apart.
func exitCode(err error) int {
	var usage usageError
	var config configError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &config):
		return exitConfig
	case errors.Is(err, errAwaited):
		return exitRunFailed
	case errors.Is(err, scheduler.ErrUnknownJob), errors.Is(err, scheduler.ErrUnknownRun), errors.Is(err, scheduler.ErrUnknownNamespace):
		return exitNotFound
	case errors.Is(err, scheduler.ErrRefused):
		return exitRefused
	case errors.Is(err, locking.ErrUnreachable):
		return exitUnreachable
	default:
		return exitFailed
	}
}
