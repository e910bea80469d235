package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement/escapement/locking"
)

// ReleaseOptions are the options of ReleaseLock. The zero value requests a release by the holder.
type ReleaseOptions struct {
	// Force gives a lock away at once: the former holder may work on beside the next holder until
	// its next renewal, and only the larger token distinguishes the two. The lease of a run cannot
	// be taken by force.
	Force bool `json:"force,omitempty"`
	// Holder is the name under which a lock is taken by force; other clients see it for that
	// moment.
	Holder string
	// Author is who releases it, and Reason why; at most 64 and 256 bytes are kept.
	Author string
	Reason string `json:"reason,omitempty"`
}

// Release is the result of ReleaseLock.
type Release struct {
	Lock LockView `json:"lock"` // as it was held
	Did  Released `json:"did"`  // "told", "cancelled", "taken" or "lapses"
}

// Released is the act of ReleaseLock.
type Released string

// The acts of ReleaseLock.
const (
	// ReleaseTold: the holder of a lock is requested to release it. The holder reads the request at
	// its next renewal, and the lock is free then, or when it lapses.
	ReleaseTold Released = "told"
	// ReleaseCancelled: the run is cancelled, and its lease is gone when the run has ended.
	ReleaseCancelled Released = "cancelled"
	// ReleaseTaken: the lock was taken by force, and is free.
	ReleaseTaken Released = "taken"
	// ReleaseLapses: the lock was taken by force, could not be given back, and is free when it
	// lapses, after three seconds.
	ReleaseLapses Released = "lapses"
)

type releaseIn struct {
	named
	Token int64 `json:"token,string"` // the number of the grant that is to end
	ReleaseOptions
}

var rowRelease = row(&Operation[releaseIn, Release]{
	Info: Info{Method: "POST", Path: "locks/{name}/release", Role: Operator, Audit: "locks release", Summary: "ask the holder of a lock to end, by its token"},
	do: func(ctx context.Context, c *conn, in releaseIn) (Release, error) {
		if in.Token <= 0 {
			return Release{}, &InputError{"token is " + strconv.FormatInt(in.Token, 10) + "; it must be the number of the grant that is to end, as a string"}
		}
		if c.actor != nil {
			in.Holder = cmp.Or(in.Holder, "released over the API by "+c.actor.Name)
		}
		return releaseLock(ctx, c, in.Name, in.Token, in.ReleaseOptions)
	},
	note: func(in releaseIn, _ Release) Action {
		detail := "token " + strconv.FormatInt(in.Token, 10)
		if in.Force {
			detail += ", by force"
		}
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: detail}
	},
})

// ReleaseLock ends one grant of a lock, or of a run's lease, by its token, so that no other grant
// is ended by mistake. It does not wait for the end; GetLock shows it. It returns ErrUnknownLock
// when the name has no lock and no lease, and ErrRefused when another grant holds it, or for a
// run's lease with Force.
func (c *Client) ReleaseLock(ctx context.Context, name string, token int64, o ReleaseOptions) (Release, error) {
	return call(ctx, c, rowRelease, releaseIn{named{name}, token, o})
}

func releaseLock(ctx context.Context, c *conn, name string, token int64, o ReleaseOptions) (r Release, err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	r.Lock, err = findGrant(ctx, c, name, token)
	switch {
	case err != nil:
	case r.Lock.Kind == LockKind && o.Force:
		r.Did, err = takeAway(ctx, c, r.Lock, token, o.Holder)
	case r.Lock.Kind == LockKind:
		r.Did, err = ReleaseTold, revoke(ctx, c, r.Lock, token)
	case o.Force:
		err = unforceable(r.Lock)
	default:
		r.Did, err = ReleaseCancelled, cancelHolder(ctx, c, r.Lock, o)
	}
	return r, err
}

// findGrant finds the grant with a token among all grants of a name.
func findGrant(ctx context.Context, c *conn, name string, token int64) (LockView, error) {
	held, unread := heldByName(ctx, c, name)
	if i := slices.IndexFunc(held, func(l LockView) bool { return l.Token == token }); i >= 0 {
		return held[i], nil
	}
	if unread != nil {
		return LockView{}, unread
	}
	if len(held) == 0 {
		return LockView{}, fmt.Errorf("lock %q: %w; `locks list` shows what is held", name, ErrUnknownLock)
	}
	var others []string
	for _, l := range held {
		others = append(others, l.Who())
	}
	return LockView{}, fmt.Errorf("%w: token %d does not hold %q: it is held by %s", ErrRefused, token, name, strings.Join(others, "; and by "))
}

// grantChanged is the error for a lock that was granted to another holder just now; err when the
// same grant still holds it.
func grantChanged(ctx context.Context, c *conn, l LockView, err error) error {
	_, other := findGrant(ctx, c, l.Name, l.Token)
	return cmp.Or(other, err)
}

func revoke(ctx context.Context, c *conn, l LockView, token int64) error {
	_, locker := lockDrivers(c)
	defer locker.Close()
	err := locker.Revoke(ctx, l.Name, token)
	if errors.Is(err, locking.ErrLost) {
		return grantChanged(ctx, c, l, err)
	}
	return err
}

// takeAway takes a lock from its holder and gives it back at once, if it can.
func takeAway(ctx context.Context, c *conn, l LockView, token int64, holder string) (Released, error) {
	_, locker := lockDrivers(c)
	defer locker.Close()
	// Not kept alive, and for as short as can be: if the release gets lost, it lapses.
	o := locking.Options{TTL: 3 * lockMargin, Fixed: true, Holder: holder, Permits: l.Permits}
	switch l.Mode {
	case locking.Read.String():
		o.Mode = locking.Read
	case locking.Write.String():
		o.Mode = locking.Write
	}
	lease, err := locker.TakeOver(ctx, l.Name, token, o)
	if errors.Is(err, locking.ErrHeld) {
		return "", grantChanged(ctx, c, l, err)
	}
	if err != nil {
		return "", err
	}
	if err := lease.Release(ctx); err != nil && !errors.Is(err, locking.ErrLost) { // a lost lock is not held either
		return ReleaseLapses, nil
	}
	return ReleaseTaken, nil
}

// unforceable is the error for a run's lease, with the cure.
func unforceable(l LockView) error {
	if l.TTL == 0 {
		return fmt.Errorf("%w: the lease of run %s has lapsed already; a living node that holds the job reaps it: nodes list shows whether there is one", ErrRefused, l.Run)
	}
	return fmt.Errorf("%w: the lease of run %s cannot be taken by force, another run beside it would not be safe; without --force the run is cancelled and ends. If node %s is gone, the lease lapses in %s and a living node reaps it; if the node hangs, end its process first",
		ErrRefused, l.Run, cmp.Or(l.Node, "-"), l.TTL)
}

// cancelHolder cancels the run of a lease; a run that has ended meanwhile is as good.
func cancelHolder(ctx context.Context, c *conn, l LockView, o ReleaseOptions) error {
	_, _, err := cancelRun(ctx, c, l.Run, CancelOptions{Author: o.Author, Reason: cmp.Or(o.Reason, "locks release")})
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrUnknownRun) {
		return nil
	}
	return err
}
