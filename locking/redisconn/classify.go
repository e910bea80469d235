package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// Classify adds op, the operation, to an error of go-redis. The result also wraps locking.ErrUnreachable when the
// server could not be reached, or cannot serve now. A nil error stays nil.
func Classify(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, locking.ErrUnreachable): // classified already
		return fmt.Errorf("%s: %w", op, err)
	case unreachable(err):
		return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// declassified is an error without the locking.ErrUnreachable that Classify has added.
func declassified(err error) error {
	if !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	switch wraps := err.(type) { //nolint:errorlint // the wrappers themselves are taken off
	case interface{ Unwrap() error }:
		return declassified(wraps.Unwrap())
	case interface{ Unwrap() []error }:
		var rest []error
		for _, of := range wraps.Unwrap() {
			if of = declassified(of); of != nil {
				rest = append(rest, of)
			}
		}
		if len(rest) == 1 {
			return rest[0]
		}
		return errors.Join(rest...)
	}
	return nil
}

// unreachable reports whether err means no answer, or an answer to retry later. The caller's own cancellation is
// neither.
func unreachable(err error) bool {
	// Several Sentinels: an unreachable one may have the master's address.
	if each := interface{ Unwrap() []error }(nil); errors.As(err, &each) && !errors.Is(err, context.Canceled) {
		return slices.ContainsFunc(each.Unwrap(), unreachable)
	}
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return retryLater(reply.Error())
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var netErr net.Error // also context.DeadlineExceeded and a DNS error
	var errno syscall.Errno
	return errors.As(err, &netErr) || errors.As(err, &errno) || errors.As(err, new(*TLSError)) || // of files that are read for each connection
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// retryLaterPrefixes begin the replies of a server that starts, changes its role or loses its
// Cluster: the same request may succeed soon. Redirects are seen only when the client has followed
// too many.
var retryLaterPrefixes = []string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "BUSY ",
	"MOVED ", "ASK ", "ERR max number of clients ",
}

func retryLater(reply string) bool {
	return hasPrefix(reply, retryLaterPrefixes...) ||
		strings.Contains(reply, "attempted to access a non local key") // the slot of a script's keys is being moved
}

// hasPrefix also searches inside the text, because Redis wraps the errors of a script's commands.
func hasPrefix(reply string, with ...string) bool {
	for _, p := range with {
		if strings.HasPrefix(reply, p) || strings.Contains(reply, "-"+p) || strings.Contains(reply, ": "+p) {
			return true
		}
	}
	return false
}

// ReadOnly reports whether err is the reply of a server that refuses writes now, and may answer reads: it loads
// its data, is a replica, or lacks replicas. For Classify it is locking.ErrUnreachable.
func ReadOnly(err error) bool {
	return isReply(err, "LOADING ", "READONLY ", "MASTERDOWN ", "NOREPLICAS ")
}

// OfSlot reports whether err is the reply of a Cluster's server that cannot serve one slot now, and
// may serve other slots. For Classify it is locking.ErrUnreachable.
func OfSlot(err error) bool {
	return isReply(err, "TRYAGAIN ", "MOVED ", "ASK ", "CLUSTERDOWN Hash slot ")
}

// Denied reports whether err is the reply of a server that refuses the user or the password, or lacks a permission
// for the user.
func Denied(err error) bool {
	return isReply(err, "NOAUTH ", "WRONGPASS ", "NOPERM ")
}

// Full reports whether err is the reply of a server without memory or disk for writes. For Classify it is not
// locking.ErrUnreachable.
func Full(err error) bool {
	return isReply(err, "OOM ", "MISCONF ")
}

// isReply reports whether err is a reply with one of some prefixes.
func isReply(err error, with ...string) bool {
	reply := redis.Error(nil)
	return errors.As(err, &reply) && hasPrefix(reply.Error(), with...)
}

// Refresh makes a Cluster client reload its topology, in the background, when err wraps locking.ErrUnreachable. By
// itself the client does so after a redirect, which a dead server does not send, and once a minute. For other
// clients it does nothing.
func Refresh(ctx context.Context, client redis.UniversalClient, err error) {
	if c, ok := client.(*redis.ClusterClient); ok && errors.Is(err, locking.ErrUnreachable) {
		c.ReloadState(ctx)
	}
}
