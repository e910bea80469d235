package pglock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/escapement/escapement/locking"
)

// SQLSTATE codes that decide which error a caller gets.
const (
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	adminShutdown         = "57P01"
	crashShutdown         = "57P02"
	readOnlyTransaction   = "25006"
	insufficientPrivilege = "42501"
	undefinedFunction     = "42883"
	undefinedTable        = "42P01"
	invalidSchema         = "3F000"
)

// retryLaterClasses are the classes of a server that cannot serve now: a broken connection, a
// serialization failure, a lock timeout, a server without resources, an operator's intervention
// (among them a statement timeout), a system error.
var retryLaterClasses = []string{"08", "40", "53", "55", "57", "58"}

// code returns the SQLSTATE of err, or "" when it is not an answer of the server.
func code(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) && len(answer.Code) == 5 {
		return answer.Code
	}
	return ""
}

// isMissing reports whether err is the answer of a database without the tables or functions.
func isMissing(err error) bool {
	return slices.Contains([]string{undefinedFunction, undefinedTable, invalidSchema}, code(err))
}

// isTransient reports whether the same statement may succeed at once: it was rolled back for the sake of
// another one, or the connection was broken before, as all of a pool are after a restart.
func isTransient(err error) bool {
	switch code(err) {
	case serializationFailure, deadlockDetected, adminShutdown, crashShutdown:
		return true
	case "":
		var dial *pgconn.ConnectError
		return unreachable(err) && !errors.As(err, &dial)
	}
	return false
}

// unreachable reports whether err means no answer, or an answer to retry later. The caller's own cancellation
// is neither.
func unreachable(err error) bool {
	if c := code(err); c != "" {
		return c == readOnlyTransaction || slices.Contains(retryLaterClasses, c[:2])
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var netErr net.Error // also context.DeadlineExceeded
	var dial *pgconn.ConnectError
	return errors.As(err, &netErr) || errors.As(err, &dial) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed)
}

// explain adds op, the operation, to an error of pgx. The result also wraps locking.ErrUnreachable when the
// server gave no answer, or cannot serve now. Errors of pgx do not contain the password.
func explain(op string, err error) error {
	switch {
	case code(err) == readOnlyTransaction:
		return fmt.Errorf("%s: %w: the server is read-only, a standby or set so; connect to the primary, with target_session_attrs=read-write: %w",
			op, locking.ErrUnreachable, err)
	case unreachable(err):
		return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
	case isMissing(err):
		return fmt.Errorf("%s: the tables and functions are missing; run pglock.Migrate: %w", op, err)
	case code(err) == insufficientPrivilege:
		return fmt.Errorf("%s: grant the role what the comment of package pglock lists: %w", op, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
