package cli

import (
	"errors"
	"fmt"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/ops/http"
)

// exitCodes is for the help of the program.
const exitCodes = `Data goes to stdout, words to stderr. Exit codes:
  0  done
  1  failed
  2  usage: an unknown command, flag or argument
  3  bad configuration
  4  not found: no such job, run, node, lock, namespace or target
  5  refused, for a reason that stderr names
  6  Redis unreachable, or it takes no writes
  7  the awaited run did not succeed, or not in time
lock exits with its command's code, 128 and n when signal n ended it; and with
  75   the lock was lost before it could be given back
  126  the command cannot be executed
  127  the command was not found
A code that is not the command's own is told by the last line of stderr: lock --help.`

// The exit codes; exitCodes has their meaning.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitUnreachable = 6
	exitRunFailed   = 7

	exitLost        = 75
	exitNotRunnable = 126
	exitNoCommand   = 127
	exitSignal      = 128 // and the signal's number
)

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// endedError ends the program with a code that is not one of the program's own. All messages have
// been printed.
type endedError int

func (e endedError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// commandError ends the program with the code of the command that lock has run.
type commandError int

func (e commandError) Error() string { return fmt.Sprintf("exit status %d of the command", int(e)) }

// errInterrupted is returned when a command that waits or follows was ended by SIGINT or SIGTERM.
var errInterrupted = errors.New("interrupted")

// errAwaited is returned when the run that a command waited for did not succeed.
var errAwaited = errors.New("the run did not succeed")

// exitCode returns the exit code of an error, by which scripts distinguish errors.
func exitCode(err error) int {
	var usage usageError
	var conf config.Error
	var ended endedError
	var command commandError
	var trouble *redisconn.Trouble
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &command):
		return int(command)
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &conf):
		return exitConfig
	case errors.Is(err, ops.ErrNotAudited): // the reason that it may wrap is not the command's result
		return exitFailed
	case errors.Is(err, errAwaited):
		return exitRunFailed
	case errors.As(err, &trouble) && trouble.Kind == redisconn.KindReadOnly: // before the namespace that a replica lacks
		return exitUnreachable
	case errors.Is(err, ops.ErrUnknownJob), errors.Is(err, ops.ErrUnknownRun), errors.Is(err, ops.ErrUnknownNode), errors.Is(err, ops.ErrUnknownNamespace), errors.Is(err, ops.ErrUnknownLock), errors.Is(err, errNoTarget):
		return exitNotFound
	case errors.Is(err, ops.ErrRefused), errors.Is(err, opshttp.ErrAccess), errors.Is(err, locking.ErrHeld), errors.Is(err, locking.ErrLost),
		errors.Is(err, move.ErrBadBackup), errors.Is(err, errExists), errors.Is(err, errWouldExist), errors.Is(err, print.ErrFileThere):
		return exitRefused
	case errors.Is(err, locking.ErrUnreachable), errors.As(err, &trouble) && trouble.Kind == redisconn.KindFull:
		return exitUnreachable
	default:
		return exitFailed
	}
}
