package lock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
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

func locksReleaseCommand(a *command.App) *cobra.Command {
	var text, author string
	var o ops.ReleaseOptions
	release := a.Command("release NAME --token N [--force]", "ask the holder of a lock to end, and wait for that", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return command.Usagef("--token is missing: the one of the grant that is to end; locks get %s shows it", args[0])
			}
			token, err := strconv.ParseInt(text, 10, 64)
			if err != nil || token <= 0 {
				return command.Usagef("--token %s is not a token; locks get %s shows it", print.Quote(text), args[0])
			}
			o.Author, o.Holder = a.Author(author), thisProcess("escapement locks release")
			return a.Connect(func(t command.Tool) error { return locksRelease(t, token, o) })(cmd, args)
		})
	release.Long = `The token names the grant that is to end, so that nobody else's is ended by mistake.

A lock: its holder is told at its next renewal, and only then can others have it; one
whose holder is gone, or that is not renewed, lapses when its time is over. With --force
others can have it at once, and whoever held it may work on beside them until its next
renewal: only the larger token tells the two apart.

A running job's: the run is cancelled, and its lease is gone when the run has ended. It
cannot be forced: a lease whose node is gone lapses, and a living node reaps it then.

Exit code 4: nobody holds it. 5: not by that token, or it cannot be forced.`
	release.Example = `escapement locks release order:42 --token 1795669507299461
escapement locks release order:42 --token 1795669507299461 --force`
	release.Flags().StringVar(&text, "token", "", "the token of the grant that is to end, a `number`; required")
	release.Flags().BoolVar(&o.Force, "force", false, "take the lock away at once")
	release.Flags().StringVar(&o.Reason, "reason", "", "why, a `text` for the audit")
	command.AuthorFlag(release, &author)
	return release
}

// releasedJSON is the output of locks release.
type releasedJSON struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Token    int64  `json:"token,string"`
	Released bool   `json:"released"` // false: taken away by force, and free when it lapses
}

func locksRelease(t command.Tool, token locking.Token, o ops.ReleaseOptions) error {
	r, err := t.Client.ReleaseLock(t.Ctx, t.Args[0], token, o)
	if err != nil {
		return asInput(err)
	}
	switch l := r.Lock; r.Did {
	case ops.ReleaseTold:
		err = awaitLock(t, l)
	case ops.ReleaseCancelled:
		err = awaitLease(t, l)
	case ops.ReleaseTaken:
		t.Report("lock %q is taken from %s, which is told at its next renewal, or in %s; until then it may work on, and only a token above %d tells others from it",
			l.Name, l.Who(), print.Brief(l.TTL), token)
	default:
		t.Report("lock %q is taken from %s, and could not be given back: it is free in %s", l.Name, l.Who(), 3*lockstore.Margin)
	}
	if err != nil || !t.JSON() {
		return err
	}
	return print.JSON(t.Stdout, releasedJSON{r.Lock.Name, r.Lock.Kind, r.Lock.Token, r.Did != ops.ReleaseLapses})
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
func awaitLock(t command.Tool, l ops.LockView) error {
	longest := l.TTL
	if now, err := t.Client.GetLock(t.Ctx, l.Name); err == nil { // it may have been renewed before it was revoked
		if i := slices.IndexFunc(allHeld(now), sameGrant(l)); i >= 0 {
			longest = allHeld(now)[i].TTL
		}
	}
	t.Report("lock %q: %s is asked to end; it hears of it at its next renewal, and the lock is free in %s at most", l.Name, l.Who(), print.Brief(longest))
	last, err := awaitEnd(t, l, longest+releasedLate, "lock "+strconv.Quote(l.Name))
	switch {
	case err != nil:
		return err
	case last.Kind == ops.LockKind:
		t.Report("lock %q: that grant has ended; now it is held by %s", l.Name, last.Who())
	default:
		t.Report("lock %q is free", l.Name)
	}
	return nil
}

// awaitLease waits until the lease of a run is gone, which was cancelled.
func awaitLease(t command.Tool, l ops.LockView) error {
	t.Report("%s is cancelled; waiting until it has ended: a command gets SIGTERM, and SIGKILL 5s later; a function ends when it heeds its context", l.Who())
	_, err := awaitEnd(t, l, 0, "run "+l.Run)
	if err == nil {
		t.Report("run %s has ended, and its lease is gone", l.Run)
	}
	return err
}

// awaitEnd waits until the grant of l has ended; at most for a time, 0 for no limit. It returns the
// last view of the lock. The request stays in force after an error.
func awaitEnd(t command.Tool, l ops.LockView, most time.Duration, what string) (last ops.LockView, err error) {
	err = t.Await(what, releasedEvery, most, func() (bool, error) {
		last, err = t.Client.GetLock(t.Ctx, l.Name)
		if errors.Is(err, ops.ErrUnknownLock) {
			return true, nil
		}
		return err == nil && !slices.ContainsFunc(allHeld(last), sameGrant(l)), err
	})
	switch {
	case errors.Is(err, command.ErrLate):
		err = fmt.Errorf("%s is still held after %s by the same grant, which is asked to end: look again with locks get", what, print.Brief(most))
	case errors.Is(err, command.ErrInterrupted):
		err = fmt.Errorf("%w; %s stays asked to end: look again with locks get", err, what)
	}
	return last, err
}
