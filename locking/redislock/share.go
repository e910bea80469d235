package redislock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// readWrite is the kind of a read-write lock. The kind of a semaphore is the number of its permits;
// "1" is a lock.
const readWrite = "rw"

// Share implements locking.Sharer. One of a single permit is a semaphore too: a lock with other keys.
func (d *Driver) Share(s locking.Share) locking.Driver {
	share := *d
	share.scripts = shareScripts
	share.kind, share.weight = strconv.Itoa(max(s.Permits, 1)), 1
	switch s.Mode {
	case locking.Read:
		share.kind = readWrite
	case locking.Write:
		share.kind, share.weight = readWrite, locking.MaxPermits
	case locking.Exclusive:
	}
	return &share
}

// Holders implements locking.Sharer.
func (d *Driver) Holders(ctx context.Context, name string) ([]locking.Ownership, error) {
	holders, _, err := d.owners(ctx, name)
	return holders, err
}

// owners returns the holders of name, in the order of the tokens, and the Ownership of a free lock.
func (d *Driver) owners(ctx context.Context, name string) (holders []locking.Ownership, nobody locking.Ownership, err error) {
	if d.refused != nil {
		return nil, nobody, d.refused
	}
	op := "owner at redis " + redisconn.Addr(d.client)
	reply, err := ownerScript.Run(ctx, d.client, lockKeys(d.namespace, name)).Slice()
	if err != nil {
		return nil, nobody, d.explain(ctx, op, err)
	}
	if holders, nobody, err = readOwners(name, reply, op); err != nil {
		return nil, nobody, err
	}
	slices.SortFunc(holders, func(a, b locking.Ownership) int { return cmp.Compare(a.Token, b.Token) })
	return holders, nobody, nil
}

// readKind converts a kind that share.lua has stored, and how many permits a holder takes.
func readKind(kind string, weight int64) locking.Share {
	switch {
	case kind == readWrite && weight > 1:
		return locking.Share{Mode: locking.Write}
	case kind == readWrite:
		return locking.Share{Mode: locking.Read}
	case kind == "1":
		return locking.Share{}
	}
	permits, _ := strconv.Atoi(kind) // 0 of a hash that is not ours
	return locking.Share{Permits: permits}
}

// isOtherKind reports whether a script found a lock where it expected a share, or the other way round.
func isOtherKind(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// usedAs is the error of an acquisition whose script has failed because the name is in use as a share.
func (d *Driver) usedAs(ctx context.Context, name string, failed error) error {
	reply, err := ownerScript.Run(ctx, d.client, lockKeys(d.namespace, name)).Slice()
	var waiters int64
	var kind string
	if err != nil || len(reply) < 2 || !lockredis.Scan(reply[:2], &waiters, &kind) || readKind(kind, 1) == (locking.Share{}) {
		return d.explain(ctx, "acquire at redis "+redisconn.Addr(d.client), failed)
	}
	return d.otherKind(name, kind)
}

// otherKind is the error for a name that is in use as a share of another kind.
func (d *Driver) otherKind(name, kind string) error {
	words := func(kind string) string {
		switch kind {
		case readWrite:
			return "a read-write lock"
		case "", "1":
			return "a lock"
		}
		return "a semaphore of " + kind + " permits"
	}
	field := "Options.Permits"
	if d.kind == readWrite {
		field = "Options.Mode"
	}
	return &locking.InputError{Lock: name, Field: field, Why: fmt.Sprintf(
		"asks for %s, and somebody holds or waits for the name as %s; all contenders must say the same", words(d.kind), words(kind))}
}
