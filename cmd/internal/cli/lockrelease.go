package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

const (
	// releasedEvery is how often locks release looks.
	releasedEvery = 200 * time.Millisecond

	// releasedLate is how much longer than the lease's time left it looks.
	releasedLate = 2 * time.Second
)

func (a *app) locksReleaseCommand() *cobra.Command {
	var text, author string
	var o ops.ReleaseOptions
	release := a.command("release NAME --token N [--force]", "ask the holder of a lock to end, and wait for that", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return usagef("--token is missing: the one of the grant that is to end; locks get %s shows it", args[0])
			}
			token, err := strconv.ParseInt(text, 10, 64)
			if err != nil || token <= 0 {
				return usagef("--token %s is not a token; locks get %s shows it", print.Quote(text), args[0])
			}
			o.Author, o.Holder = a.author(author), thisProcess("escapement locks release")
			return a.inspect(func(t tool) error { return a.locksRelease(t, token, o) })(cmd, args)
		})
	release.Long = `The token names the grant that is to end, so that nobody else's is ended by mistake.

A lock: its holder is told at its next renewal, and only then can others have it; one
whose holder is gone, or that is not renewed, lapses when its time is over. With --force
others can have it at once, and whoever held it may work on beside them until its next
renewal: only the larger token tells the two apart.

A running job's: the run is cancelled, and its lease is gone when the run has ended. It
cannot be forced: a lease whose node is gone lapses, and a living node reaps it then.

Exit code 4: nobody holds it. 5: not by that token, or it cannot be forced.`
	release.Flags().StringVar(&text, "token", "", "the token of the grant that is to end, a `number`; required")
	release.Flags().BoolVar(&o.Force, "force", false, "take the lock away at once")
	release.Flags().StringVar(&o.Reason, "reason", "", "why, a `text` for the audit")
	authorFlag(release, &author)
	return release
}

// releasedJSON is the output of locks release.
type releasedJSON struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Token    int64  `json:"token,string"`
	Released bool   `json:"released"` // false: taken away by force, and free when it lapses
}

func (a *app) locksRelease(t tool, token locking.Token, o ops.ReleaseOptions) error {
	r, err := t.in.ReleaseLock(t.ctx, t.args[0], token, o)
	if err != nil {
		return asInput(err)
	}
	switch l := r.Lock; r.Did {
	case ops.ReleaseTold:
		err = a.awaitLock(t, l)
	case ops.ReleaseCancelled:
		err = a.awaitLease(t, l)
	case ops.ReleaseTaken:
		a.say("lock %q is taken from %s, which is told at its next renewal, or in %s; until then it may work on, and only a token above %d tells others from it",
			l.Name, l.Who(), print.Brief(l.TTL), token)
	default:
		a.say("lock %q is taken from %s, and could not be given back: it is free in %s", l.Name, l.Who(), 3*lockstore.Margin)
	}
	if err != nil || !a.json() {
		return err
	}
	return print.JSON(a.stdout, releasedJSON{r.Lock.Name, r.Lock.Kind, r.Lock.Token, r.Did != ops.ReleaseLapses})
}

// allHeld returns every lock held by the name of l.
func allHeld(l ops.LockView) []ops.LockView {
	return append([]ops.LockView{l}, l.Also...)
}

// sameGrant reports whether a lock is held by the grant of l.
func sameGrant(l ops.LockView) func(ops.LockView) bool {
	return func(o ops.LockView) bool { return o.Kind == l.Kind && o.Run == l.Run && o.Token == l.Token }
}

// awaitLock waits until the revoked grant no longer has the lock.
func (a *app) awaitLock(t tool, l ops.LockView) error {
	longest := l.TTL
	if now, err := t.in.GetLock(t.ctx, l.Name); err == nil { // it may have been renewed before it was revoked
		if i := slices.IndexFunc(allHeld(now), sameGrant(l)); i >= 0 {
			longest = allHeld(now)[i].TTL
		}
	}
	a.say("lock %q: %s is asked to end; it hears of it at its next renewal, and the lock is free in %s at most", l.Name, l.Who(), print.Brief(longest))
	var last ops.LockView
	err := a.until(t, longest+releasedLate, "lock "+strconv.Quote(l.Name), func() (over bool, err error) {
		last, err = t.in.GetLock(t.ctx, l.Name)
		if errors.Is(err, ops.ErrUnknownLock) {
			return true, nil
		}
		return err == nil && !slices.ContainsFunc(allHeld(last), sameGrant(l)), err
	})
	switch {
	case err != nil:
		return err
	case last.Kind == ops.LockKind:
		a.say("lock %q: that grant has ended; now it is held by %s", l.Name, last.Who())
	default:
		a.say("lock %q is free", l.Name)
	}
	return nil
}

// awaitLease waits until the lease of a run is gone, which was cancelled.
func (a *app) awaitLease(t tool, l ops.LockView) error {
	a.say("%s is cancelled; waiting until it has ended: a command gets SIGTERM, and SIGKILL 5s later; a function ends when it heeds its context", l.Who())
	err := a.until(t, 0, "run "+l.Run, func() (bool, error) {
		now, err := t.in.GetLock(t.ctx, l.Name)
		if errors.Is(err, ops.ErrUnknownLock) {
			return true, nil
		}
		return err == nil && !slices.ContainsFunc(allHeld(now), sameGrant(l)), err
	})
	if err == nil {
		a.say("run %s has ended, and its lease is gone", l.Run)
	}
	return err
}

// until looks until something is over, through outages of Redis too; at most for a time, 0 for no
// limit. The request stays in force when until ends.
func (a *app) until(t tool, most time.Duration, what string, look func() (over bool, err error)) error {
	began, told := time.Now(), false
	for {
		over, err := look()
		switch {
		case over:
			return nil
		case t.ctx.Err() != nil: // checked below
		case err != nil && !errors.Is(err, locking.ErrUnreachable):
			return err
		case most > 0 && time.Since(began) > most:
			return cmp.Or(err, fmt.Errorf("%s is still held after %s by the same grant, which is asked to end: look again with locks get", what, print.Brief(most)))
		case err != nil && !told:
			told = true
			a.say("Redis does not answer; still waiting for %s, until interrupted: %v", what, err)
		}
		select {
		case <-t.ctx.Done():
			return fmt.Errorf("interrupted; %s stays asked to end: look again with locks get", what)
		case <-time.After(releasedEvery):
		}
	}
}
