package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler"
)

const (
	// releasedEvery is how often locks release looks.
	releasedEvery = 200 * time.Millisecond

	// releasedLate is how much longer than the lease's time left it looks.
	releasedLate = 2 * time.Second
)

func (a *app) locksReleaseCommand() *cobra.Command {
	var text string
	var force bool
	release := a.command("release NAME --token N [--force]", "ask the holder of a lock to end, and wait for that", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if text == "" {
				return usagef("--token is missing: the one of the grant that is to end; locks get %s shows it", args[0])
			}
			token, err := strconv.ParseInt(text, 10, 64)
			if err != nil || token <= 0 {
				return usagef("--token %s is not a token; locks get %s shows it", quote(text), args[0])
			}
			return a.inspectLocks(func(t lockTool) error { return a.locksRelease(t, token, force) })(cmd, args)
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
	release.Flags().BoolVar(&force, "force", false, "take the lock away at once")
	return release
}

// releasedJSON is what locks release prints.
type releasedJSON struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Token    string `json:"token"`
	Released bool   `json:"released"` // false: taken away by force, and free when it lapses
}

func (a *app) locksRelease(t lockTool, token locking.Token, force bool) error {
	held, unread := t.named(t.args[0])
	l, err := theGrant(t.args[0], held, strconv.FormatInt(token, 10))
	if err != nil {
		return cmp.Or(unread, err)
	}
	released := true
	switch {
	case l.Kind == kindLock && force:
		released, err = a.takeAway(t, l, token)
	case l.Kind == kindLock:
		err = a.revoke(t, l, token)
	case force:
		err = unforceable(l)
	default:
		err = a.cancelHolder(t, l)
	}
	if err != nil || !a.json() {
		return err
	}
	return printJSON(a.stdout, releasedJSON{l.Name, l.Kind, l.Token, released})
}

// theGrant finds the grant with a token among all that is held by a name.
func theGrant(name string, held []lockJSON, token string) (lockJSON, error) {
	if i := slices.IndexFunc(held, func(l lockJSON) bool { return l.Token == token }); i >= 0 {
		return held[i], nil
	}
	if len(held) == 0 {
		return lockJSON{}, fmt.Errorf("lock %q: %w", name, errNoLock)
	}
	var others []string
	for _, l := range held {
		others = append(others, l.who())
	}
	return lockJSON{}, fmt.Errorf("%w: token %s does not hold %q: it is held by %s", scheduler.ErrRefused, token, name, strings.Join(others, "; and by "))
}

// who names a holder with its token.
func (l lockJSON) who() string {
	if l.Kind == kindRun {
		return fmt.Sprintf("run %s on %s with token %s", l.Run, cmp.Or(l.Node, "an unnamed node"), l.Token)
	}
	return fmt.Sprintf("%s with token %s", who(l.Holder, l.Owner), l.Token)
}

// changed is the error for a lock that was given to somebody else just now.
func (t lockTool) changed(l lockJSON) error {
	held, unread := t.named(t.args[0])
	_, err := theGrant(t.args[0], held, l.Token)
	if err != nil {
		return cmp.Or(unread, err)
	}
	return nil // nil: it is held by that token all the same
}

// revoke asks the holder to end and waits until the lock is not its any more.
func (a *app) revoke(t lockTool, l lockJSON, token locking.Token) error {
	err := t.locker.Revoke(t.ctx, l.Name, token)
	if errors.Is(err, locking.ErrLost) {
		return cmp.Or(t.changed(l), err)
	}
	if err != nil {
		return err
	}
	left := time.Duration(l.TTLMS) * time.Millisecond
	if o, err := t.locker.Owner(t.ctx, l.Name); err == nil && o.Token == token { // it may have been renewed before it was revoked
		left = o.Left
	}
	a.say("lock %q: %s is asked to end; it hears of it at its next renewal, and the lock is free in %s at most", l.Name, l.who(), brief(left))
	var last locking.Ownership
	err = a.until(t, left+releasedLate, "lock "+strconv.Quote(l.Name), func() (over bool, err error) {
		last, err = t.locker.Owner(t.ctx, l.Name)
		return err == nil && last.Token != token, err
	})
	switch {
	case err != nil:
		return err
	case last.Held():
		a.say("lock %q: that grant has ended; now it is held by %s", l.Name, lockOf(last).who())
	default:
		a.say("lock %q is free", l.Name)
	}
	return nil
}

// takeAway takes a lock from its holder and gives it back at once, if it can.
func (a *app) takeAway(t lockTool, l lockJSON, token locking.Token) (released bool, err error) {
	// Not kept alive, and for as short as can be: if the release gets lost, it lapses.
	o := locking.Options{TTL: 3 * lockMargin, Fixed: true, Holder: thisProcess("escapement locks release")}
	lease, err := t.locker.TakeOver(t.ctx, l.Name, token, o)
	if errors.Is(err, locking.ErrHeld) {
		return false, cmp.Or(t.changed(l), err)
	}
	if err != nil {
		return false, err
	}
	a.say("lock %q is taken from %s, which is told at its next renewal, or in %s; until then it may work on, and only a token above %d tells others from it",
		l.Name, l.who(), l.left(), token)
	if err := lease.Release(t.ctx); err != nil && !errors.Is(err, locking.ErrLost) { // what was lost is not held either
		a.say("it could not be given back, and is free in %s: %v", o.TTL, err)
		return false, nil
	}
	return true, nil
}

// unforceable says what can be done about a run's lease instead.
func unforceable(l lockJSON) error {
	if l.TTLMS == 0 {
		return fmt.Errorf("%w: the lease of run %s has lapsed already; a living node that holds the job reaps it: nodes list shows whether there is one", scheduler.ErrRefused, l.Run)
	}
	return fmt.Errorf("%w: the lease of run %s cannot be taken by force, another run beside it would not be safe; without --force the run is cancelled and ends. If node %s is gone, the lease lapses in %s and a living node reaps it; if the node hangs, end its process first",
		scheduler.ErrRefused, l.Run, cmp.Or(l.Node, "-"), l.left())
}

// cancelHolder cancels a run and waits until its lease is gone.
func (a *app) cancelHolder(t lockTool, l lockJSON) error {
	did, err := t.in.Cancel(t.ctx, l.Run, scheduler.CancelOptions{Author: a.author(""), Reason: "locks release"})
	if err != nil && !errors.Is(err, scheduler.ErrRefused) && !errors.Is(err, scheduler.ErrUnknownRun) {
		return err
	}
	if did == scheduler.CancelTold {
		a.say("%s is cancelled; waiting until it has ended: a command gets SIGTERM, and SIGKILL 5s later; a function ends when it heeds its context", l.who())
	}
	err = a.until(t, 0, "run "+l.Run, func() (bool, error) {
		leases, err := t.leases(l.Name)
		gone := !slices.ContainsFunc(leases, func(o lockJSON) bool { return o.Run == l.Run && o.Token == l.Token })
		return err == nil && gone, err
	})
	if err == nil {
		a.say("run %s has ended, and its lease is gone", l.Run)
	}
	return err
}

// until looks until something is over, through outages of Redis too; at most for
// a time, 0 for no limit. what is waited for stays asked for when this ends.
func (a *app) until(t lockTool, most time.Duration, what string, look func() (over bool, err error)) error {
	began, told := time.Now(), false
	for {
		over, err := look()
		switch {
		case over:
			return nil
		case t.ctx.Err() != nil: // asked below
		case err != nil && !errors.Is(err, locking.ErrUnreachable):
			return err
		case most > 0 && time.Since(began) > most:
			return cmp.Or(err, fmt.Errorf("%s is still held after %s by the same grant, which is asked to end: look again with locks get", what, brief(most)))
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
