package ledger

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// backfillRestored is the stored state of a backfill that a node has stored again, until it is next
// fed: then runs that Redis has lost, and no node was granted, are put into pending again.
const backfillRestored = "restored"

// refeedArgs are the arguments of refeed.lua.
type refeedArgs struct {
	Server string   `json:"server"` // id of the caller's epoch, "" for any
	Seen   []string `json:"seen"`   // records
}

// Refeed stores backfills of a partition again, as the node saw them last, in the epoch that At
// names. It returns how many Redis had lost, or had not got as far. It returns ErrServer in another
// epoch.
func (l *Ledger) Refeed(ctx context.Context, part int, seen []Backfill) (stored int, err error) {
	if len(seen) == 0 {
		return 0, nil
	}
	args := refeedArgs{Server: l.known}
	for _, b := range seen {
		args.Seen = append(args.Seen, b.record)
	}
	word, err := refeedScript.call(ctx, l.client, l.keys[part].tag, "", args).Text()
	if err == nil && word == "server" {
		err = ErrServer
	}
	if err != nil {
		return 0, redisconn.Classify("store backfills again", err)
	}
	return strconv.Atoi(word)
}

// LostBackfills are those of some running backfills of a partition whose record is gone although
// they have not ended and their jobs exist: only a person deletes such a record.
func (l *Ledger) LostBackfills(ctx context.Context, part int, some []Backfill) (lost []Backfill, err error) {
	if len(some) == 0 {
		return nil, nil
	}
	jobs := make([]string, len(some))
	for i, b := range some {
		jobs[i] = b.Job
	}
	k := l.keys[part]
	var going, ended, entries *redis.SliceCmd
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error { // in this order: a script moves a record from the first key to the second
		going, ended, entries = p.HMGet(ctx, k.backfills, jobs...), p.HMGet(ctx, k.backfilled, jobs...), p.HMGet(ctx, k.jobs, jobs...)
		return nil
	})
	if err != nil {
		return nil, l.explain(ctx, "look for lost backfills", err)
	}
	for i, b := range some {
		last, _ := ended.Val()[i].(string)
		over, err := backfillOf(last)
		isOver := last != "" && (err != nil || over.ID == b.ID)
		if going.Val()[i] == nil && entries.Val()[i] != nil && !isOver {
			lost = append(lost, b)
		}
	}
	return lost, nil
}
