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

// Classify adds op, what was being done, to an error of go-redis. When the
// server could not be reached or cannot serve now, the result also wraps
// locking.ErrUnreachable. A nil error stays nil.
func Classify(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, locking.ErrUnreachable): // explained already
		return fmt.Errorf("%s: %w", op, err)
	case unreachable(err):
		return fmt.Errorf("%s: %w: %w", op, locking.ErrUnreachable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// unreachable reports whether err means that there was no answer, or that the
// answer was "not now". The caller's own cancellation is neither.
func unreachable(err error) bool {
	// Of several Sentinels that do not name a master, those that were not reached may know it.
	if each := interface{ Unwrap() []error }(nil); errors.As(err, &each) && !errors.Is(err, context.Canceled) {
		return slices.ContainsFunc(each.Unwrap(), unreachable)
	}
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return notNow(reply.Error())
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	var netErr net.Error // also context.DeadlineExceeded and a DNS error
	var errno syscall.Errno
	return errors.As(err, &netErr) || errors.As(err, &errno) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// notNowPrefixes are the replies of a server that starts, changes its role or
// loses its cluster: the same request may work in a moment. MOVED and ASK come
// through only when the client ran out of redirects.
var notNowPrefixes = []string{
	"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "BUSY ",
	"MOVED ", "ASK ", "ERR max number of clients ",
}

func notNow(reply string) bool {
	return begins(reply, notNowPrefixes...) ||
		strings.Contains(reply, "attempted to access a non local key") // the slot of a script's keys is on its way
}

// begins also looks inside the text, because Redis wraps the error of a
// command called by a script, and one that a script raises again.
func begins(reply string, with ...string) bool {
	for _, p := range with {
		if strings.HasPrefix(reply, p) || strings.Contains(reply, "-"+p) || strings.Contains(reply, ": "+p) {
			return true
		}
	}
	return false
}

// ReadOnly reports whether err is the reply of a server that takes no writes now, though it may answer what is read: it loads its data, is
// a replica, or lacks replicas. Explain makes it an ErrUnreachable.
func ReadOnly(err error) bool {
	return replied(err, "LOADING ", "READONLY ", "MASTERDOWN ", "NOREPLICAS ")
}

// OfSlot reports whether err is the reply of a server of a Cluster that cannot serve one slot now, which moves or has moved, and may well serve
// others. Explain makes it an ErrUnreachable.
func OfSlot(err error) bool {
	return replied(err, "TRYAGAIN ", "MOVED ", "ASK ", "CLUSTERDOWN Hash slot ")
}

// Denied reports whether err is the reply of a server that does not, or not any longer, know the caller, or gives it no right to the call.
func Denied(err error) bool {
	return replied(err, "NOAUTH ", "WRONGPASS ", "NOPERM ")
}

// Full reports whether err is the reply of a server that takes no writes because it has no memory or no disk left. It answers, so
// this is no ErrUnreachable.
func Full(err error) bool {
	return replied(err, "OOM ", "MISCONF ")
}

// replied reports whether err is a reply that begins with one of some words.
func replied(err error, with ...string) bool {
	reply := redis.Error(nil)
	return errors.As(err, &reply) && begins(reply.Error(), with...)
}

// Refresh makes a Cluster client whose call was answered with err, and err wraps
// locking.ErrUnreachable, look who is master of what now. By itself it does so when
// a server sends it elsewhere, which a dead one does not, and once a minute. It
// does not wait. Other clients are left alone.
func Refresh(ctx context.Context, client redis.UniversalClient, err error) {
	if c, ok := client.(*redis.ClusterClient); ok && errors.Is(err, locking.ErrUnreachable) {
		c.ReloadState(ctx)
	}
}
