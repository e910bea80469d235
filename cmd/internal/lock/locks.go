package lock

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// Locks makes the commands locks.
func Locks(a *command.App) *cobra.Command {
	var limit int
	var after string
	list := a.Command("list [--after NAME] [--limit N]", "list the locks, and the leases of running jobs", command.Wants(),
		func(cmd *cobra.Command, args []string) error {
			f := ops.LockFilter{After: after, Limit: a.Limit(cmd, limit)}
			return a.Connect(func(t command.Tool) error { return locksList(t, f) })(cmd, args)
		})
	list.Long = `Lists what is held now. KIND is lock for what a program or escapement lock took by its
name, and run for the lease of a running job: its name is the job's, with # and the
number of the shard for a part of one. A semaphore has a row for each holder, with the
KIND "permit of N", and a read-write lock one for each, with read or write. LEFT is until others can have it, unless it is
renewed. It looks at the name of every key in Redis, a thousand at a time, and then at the
locks on the page.

` + command.PageForms + `
Rows of one name stay on one page.

It sees the locks of the Redis that is configured, which package redislock and escapement
lock take. Those of package redlock live on masters of their own: it does not list them,
and locks get and release do not know them either. Ask with redlock's Locker.Owner.`
	list.Example = `escapement locks list
escapement locks list --limit 0 -o json`
	list.Flags().StringVar(&after, "after", "", "only what is held by names behind this `NAME`")
	command.LimitFlag(list, &limit)
	get := a.Command("get NAME", "show who holds a lock", command.Wants("NAME"), a.Connect(locksGet))
	get.Long = `Shows the lock of that name, or each holder of a semaphore or read-write lock, and the leases of that job's runs, each with its KIND; NAME
may also name one shard: job#2. In JSON the first is the answer, a lock before runs, and
others are its field "also". Exit code 4 when nobody holds anything by that name.`
	get.Example = `escapement locks get order:42`
	return a.CompleteFirst(a.Group("locks COMMAND", "list, show and release locks", list, get, locksReleaseCommand(a), locksBootstrapCommand(a)), lockNames)
}

func locksList(t command.Tool, f ops.LockFilter) error {
	found, unread := t.Client.ListLocks(t.Ctx, f)
	if len(found.Items) == 0 && unread != nil && !errors.As(unread, new(*ops.UnreachableError)) {
		return unread
	}
	if found.Next != "" {
		t.ReportNext(len(found.Items), found.Next)
	}
	if t.JSON() {
		return errors.Join(print.JSON(t.Stdout, print.List(found.Items)), t.ReportUnreadable(unread))
	}
	out := t.NewTable(print.Whole("NAME"), print.Whole("KIND"), print.Whole("TOKEN"), print.Whole("LEFT"), print.Whole("WAITERS"), print.Col("NODE"), print.Col("HOLDER"), print.Wide("OWNER"))
	for _, l := range found.Items {
		out.Row(l.Name, kindOf(l), print.Number(l.Token), leftOf(l), print.Number(l.Waiters), l.Node, holder(l), l.Owner)
	}
	return errors.Join(out.Flush(), t.ReportUnreadable(unread))
}

// lockFlags are the arguments and flags behind the fields that the library refuses.
var lockFlags = map[string]string{"name": "NAME", "Options.TTL": "--ttl", "Options.Wait": "--wait", "Options.Delay": "--delay", "Options.Permits": "--permits", "Options.Mode": "NAME"}

// asInput makes an error of usage of an argument that the library refused.
func asInput(err error) error {
	var input *locking.InputError
	if errors.As(err, &input) {
		return command.Usagef("%s %s", cmp.Or(lockFlags[input.Field], input.Field), input.Why)
	}
	return err
}

func locksGet(t command.Tool) error {
	l, unread := t.Client.GetLock(t.Ctx, t.Args[0])
	if l.Name == "" {
		return asInput(unread)
	}
	if t.JSON() {
		return errors.Join(print.JSON(t.Stdout, l), unread)
	}
	for i, l := range allHeld(l) {
		if i > 0 {
			fmt.Fprintln(t.Stdout)
		}
		if err := print.Pairs(t.Stdout, "name", l.Name, "kind", kindOf(l), "holder", holder(l), "owner", l.Owner, "token", print.Number(l.Token),
			"left", leftOf(l), "waiters", strconv.Itoa(l.Waiters), "node", l.Node, "run", l.Run); err != nil {
			return err
		}
	}
	return unread
}

// kindOf returns the kind of the lock; for a semaphore or a read-write lock, also how it is held.
func kindOf(l ops.LockView) string {
	switch {
	case l.Permits > 0:
		return fmt.Sprintf("permit of %d", l.Permits)
	case l.Mode != "":
		return l.Mode
	}
	return l.Kind
}

// leftOf returns the time left for a table; for a lock under a key without an end, which is not
// ours, it is unknown.
func leftOf(l ops.LockView) string {
	if l.Kind == ops.LockKind && l.TTL == 0 {
		return ""
	}
	return print.Brief(l.TTL)
}

// holder returns the lock's holder, and whether it was ordered to end.
func holder(l ops.LockView) string {
	switch {
	case !l.Revoked:
		return l.Holder
	case l.Holder == "":
		return "asked to end"
	}
	return l.Holder + ", asked to end"
}

func lockNames(t command.Tool) (all []string, err error) {
	found, err := t.Client.ListLocks(t.Ctx, ops.LockFilter{Limit: command.MaxCompleted})
	for _, l := range found.Items {
		all = append(all, l.Name)
	}
	return all, err
}
