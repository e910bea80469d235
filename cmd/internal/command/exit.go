package command

import (
	"errors"
	"fmt"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
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
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitConfig      = 3
	ExitNotFound    = 4
	ExitRefused     = 5
	ExitUnreachable = 6
	ExitRunFailed   = 7
)

// codeError is an error with an exit code of its own.
type codeError struct {
	error
	code int
}

func (e codeError) Unwrap() error { return e.error }

// WithCode gives an error an exit code.
func WithCode(code int, err error) error { return codeError{err, code} }

// Usagef returns the error of a command line that cannot be understood.
func Usagef(format string, args ...any) error {
	return WithCode(ExitUsage, fmt.Errorf(format, args...))
}

// Ended ends the program with an exit code. All messages have been printed.
type Ended int

// Error implements error.
func (e Ended) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// worded is an error in other words.
type worded struct {
	text string
	err  error
}

func (w worded) Error() string { return w.text }
func (w worded) Unwrap() error { return w.err }

// Reword returns an error in other words.
func Reword(text string, err error) error { return worded{text, err} }

// ErrInterrupted is returned when a command that waits or follows was ended by SIGINT or SIGTERM.
var ErrInterrupted = errors.New("interrupted")

// ExitCode returns the exit code of an error, by which scripts distinguish errors.
func ExitCode(err error) int {
	var coded codeError
	var conf config.Error
	var ended Ended
	var trouble *redisconn.Trouble
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &conf):
		return ExitConfig
	case errors.Is(err, ops.ErrNotAudited): // the reason that it may wrap is not the command's result
		return ExitFailed
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &trouble) && trouble.Kind == redisconn.KindReadOnly: // before the namespace that a replica lacks
		return ExitUnreachable
	case errors.Is(err, ops.ErrUnknownJob), errors.Is(err, ops.ErrUnknownRun), errors.Is(err, ops.ErrUnknownNode), errors.Is(err, ops.ErrUnknownNamespace), errors.Is(err, ops.ErrUnknownLock):
		return ExitNotFound
	case errors.Is(err, ops.ErrRefused), errors.Is(err, opshttp.ErrAccess), errors.Is(err, locking.ErrHeld), errors.Is(err, locking.ErrLost),
		errors.Is(err, move.ErrBadBackup), errors.Is(err, print.ErrFileThere):
		return ExitRefused
	case errors.Is(err, locking.ErrUnreachable), errors.As(err, &trouble) && trouble.Kind == redisconn.KindFull:
		return ExitUnreachable
	default:
		return ExitFailed
	}
}
