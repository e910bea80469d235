package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// The kinds of locks.
const (
	kindLock = "lock"
	kindRun  = "run"
)

// lockJSON is a lock: one that somebody took by its name, or the lease of a run.
type lockJSON struct {
	Name    string `json:"name"` // of a run: its job, "job#2" for a shard
	Kind    string `json:"kind"` // lock or run
	Owner   string `json:"owner"`
	Holder  string `json:"holder"` // who that is, as it said
	Token   string `json:"token"`
	TTLMS   int64  `json:"ttl_ms"` // until others can have it, unless it is renewed; 0 of a lock: nobody knows
	Node    string `json:"node"`
	Run     string `json:"run"`
	Waiters int    `json:"waiters"`
	Revoked bool   `json:"revoked"` // its holder has been asked to end

	Also []lockJSON `json:"also,omitempty"` // of locks get: what else is held by that name
}

func (a *app) locksCommand() *cobra.Command {
	var limit int
	var after string
	list := a.command("list [--after NAME] [--limit N]", "list the locks, and the leases of running jobs", wants(),
		func(cmd *cobra.Command, args []string) error {
			if limit = a.limit(cmd, limit); limit == 0 {
				limit = math.MaxInt
			}
			return a.inspectLocks(func(t lockTool) error { return a.locksList(t, after, limit) })(cmd, args)
		})
	list.Long = `Lists what is held now. KIND is lock for what a program or escapement lock took by its
name, and run for the lease of a running job: its name is the job's, with # and the
number of the shard for a part of one. LEFT is until others can have it, unless it is
renewed. It looks at the name of every key in Redis, a thousand at a time, and then at the
locks on the page.

` + pageForms + `
Rows of one name stay on one page.

It sees the locks of the Redis that is configured, which package redislock and escapement
lock take. Those of package redlock live on masters of their own: it does not list them,
and locks get and release do not know them either. Ask with redlock's Locker.Owner.`
	list.Flags().StringVar(&after, "after", "", "only what is held by names behind this `NAME`")
	limitFlag(list, &limit)
	get := a.command("get NAME", "show who holds a lock", wants("NAME"), a.inspectLocks(a.locksGet))
	get.Long = `Shows the lock of that name, and the leases of that job's runs, each with its KIND; NAME
may also name one shard: job#2. In JSON the first is the answer, a lock before runs, and
others are its field "also". Exit code 4 when nobody holds anything by that name.`
	return a.group("locks COMMAND", "list, show and release locks", list, get, a.locksReleaseCommand())
}

// lockTool is what a command that looks at locks works with.
type lockTool struct {
	tool
	driver *redislock.Driver
	locker *locking.Locker // over the driver
}

// inspectLocks connects a command to Redis.
func (a *app) inspectLocks(f func(lockTool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.reach(cmd, func(l *loaded, client redis.UniversalClient) error {
			in, err := scheduler.NewClient(client, l.Namespace)
			if err != nil {
				return l.refused(err)
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			log := newLogger(a.stderr, l.Log)
			driver := redislock.NewDriver(client, redislock.Config{Namespace: l.Namespace, Logger: log})
			locker := locking.New(driver, locking.Config{Margin: lockMargin, Logger: log})
			defer locker.Close()
			return f(lockTool{tool{ctx, in, args}, driver, locker})
		})
	}
}

func (a *app) locksList(t lockTool, after string, limit int) error {
	found, more, unread := t.driver.List(t.ctx, after, limit)
	leases, err := t.leases("")
	if unread = errors.Join(unread, err); unread != nil && len(found)+len(leases) == 0 && !errors.As(err, new(*scheduler.UnreachableError)) {
		return unread
	} // else what could be read comes beside it
	var all []lockJSON
	for _, o := range found {
		all = append(all, lockOf(o))
	}
	all = append(all, leases...)
	slices.SortStableFunc(all, func(x, y lockJSON) int { return cmp.Compare(x.Name, y.Name) })
	all = slices.DeleteFunc(all, func(l lockJSON) bool { return l.Name <= after })
	shown := min(len(all), limit)
	for shown > 0 && shown < len(all) && all[shown].Name == all[shown-1].Name {
		shown++
	}
	if more = more || shown < len(all); more && shown > 0 {
		all = all[:shown]
		a.sayMore(shown, all[shown-1].Name)
	}
	if a.json() {
		return errors.Join(printJSON(a.stdout, list(all)), unread)
	}
	out := a.newTable(col("NAME"), whole("KIND"), whole("TOKEN"), whole("LEFT"), whole("WAITERS"), col("NODE"), col("HOLDER"), wide("OWNER"))
	for _, l := range all {
		out.row(l.Name, l.Kind, l.Token, l.known(), number(l.Waiters), l.Node, l.note(), l.Owner)
	}
	return errors.Join(out.flush(), unread)
}

func lockOf(o locking.Ownership) lockJSON {
	return lockJSON{
		Name: o.Name, Kind: kindLock, Owner: o.Owner, Holder: o.Holder, Token: strconv.FormatInt(o.Token, 10),
		TTLMS: max(0, o.Left).Milliseconds(), Waiters: o.Waiters, Revoked: o.Revoked,
	}
}

// leases are those of the runs of a job, or of one of its shards, or with "" of
// all runs, those of masters that do not answer beside an error. None when there is no such job.
func (t lockTool) leases(name string) ([]lockJSON, error) {
	job, _, _ := strings.Cut(name, "#") // which is in no job's name
	views, err := t.in.Leases(t.ctx, job)
	if errors.Is(err, scheduler.ErrUnknownJob) || errors.Is(err, scheduler.ErrUnknownNamespace) {
		return nil, nil
	}
	var found []lockJSON
	for _, v := range views {
		if name == job || v.Name == name {
			found = append(found, lockJSON{Name: v.Name, Kind: kindRun, Owner: v.Run, Token: v.Token, TTLMS: v.TTLMS, Node: v.Node, Run: v.Run})
		}
	}
	return found, err
}

// named is everything that is held by a name, the lock first; beside an error, what could be read of it.
func (t lockTool) named(name string) ([]lockJSON, error) {
	o, err := t.locker.Owner(t.ctx, name)
	if err != nil {
		return nil, asInput(err)
	}
	held, err := t.leases(name)
	if o.Held() {
		held = append([]lockJSON{lockOf(o)}, held...)
	}
	return held, err
}

// lockFlags are the arguments and flags behind the fields that the library refuses.
var lockFlags = map[string]string{"name": "NAME", "Options.TTL": "--ttl", "Options.Wait": "--wait", "Options.Delay": "--delay"}

// asInput makes an error of usage of an argument that the library refused.
func asInput(err error) error {
	var input *locking.InputError
	if errors.As(err, &input) {
		return usagef("%s %s", cmp.Or(lockFlags[input.Field], input.Field), input.Why)
	}
	return err
}

func (a *app) locksGet(t lockTool) error {
	held, unread := t.named(t.args[0])
	if len(held) == 0 {
		return cmp.Or(unread, fmt.Errorf("lock %q: %w; locks list shows what is held", t.args[0], errNoLock))
	}
	if a.json() {
		held[0].Also = held[1:]
		return errors.Join(printJSON(a.stdout, held[0]), unread)
	}
	for i, l := range held {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := pairs(a.stdout, "name", l.Name, "kind", l.Kind, "holder", l.note(), "owner", l.Owner, "token", l.Token,
			"left", l.known(), "waiters", strconv.Itoa(l.Waiters), "node", l.Node, "run", l.Run); err != nil {
			return err
		}
	}
	return unread
}

func (l lockJSON) left() string { return brief(time.Duration(l.TTLMS) * time.Millisecond) }

// known is left for a table; of a lock under a key without an end, which is not ours, nobody knows it.
func (l lockJSON) known() string {
	if l.Kind == kindLock && l.TTLMS == 0 {
		return ""
	}
	return l.left()
}

// note is who holds it, and that it was asked to end.
func (l lockJSON) note() string {
	switch {
	case !l.Revoked:
		return l.Holder
	case l.Holder == "":
		return "asked to end"
	}
	return l.Holder + ", asked to end"
}
