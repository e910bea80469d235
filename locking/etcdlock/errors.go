package etcdlock

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/escapement/escapement/locking"
)

// explain adds the operation, and wraps locking.ErrUnreachable when the outcome is unknown or a
// retry helps. etcd's own refusals stay as they are: no permission, no space, a wrong password.
func explain(op string, err error) error {
	if refused(err) {
		return fmt.Errorf("%s at etcd: %w", op, err)
	}
	return fmt.Errorf("%s at etcd: %w: %w", op, locking.ErrUnreachable, err)
}

// refused reports whether err means that etcd has not carried out the request, and will refuse it
// again.
func refused(err error) bool {
	switch codeOf(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.Unimplemented, codes.FailedPrecondition, codes.NotFound:
		return true
	case codes.ResourceExhausted:
		return errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace)
	default:
		return false
	}
}

func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.As(err, &known):
		return known.Code()
	}
	return status.Code(err)
}

// is reports whether err, of the client or of gRPC, is etcd's error target.
func is(err, target error) bool { return err != nil && errors.Is(rpctypes.Error(err), target) }

// attempt calls f, and once more when its connection broke or the member has no leader: the next connection, or
// the next member, may answer. All requests of this package may be repeated.
func attempt[T any](ctx context.Context, f func() (T, error)) (T, error) {
	out, err := f()
	if codeOf(err) == codes.Unavailable && ctx.Err() == nil {
		return f()
	}
	return out, err
}
