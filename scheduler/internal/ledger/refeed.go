package ledger

import (
	"context"
	"strconv"

	"github.com/escapement/escapement/locking/redisconn"
)

// backfillRestored is the stored state of a backfill that a node has stored again, until it is next fed: then runs that Redis has lost, and
// no node was granted, are put into pending again.
const backfillRestored = "restored"

// refeedArgs are the arguments of refeed.lua.
type refeedArgs struct {
	Server string   `json:"server"` // id of the epoch that the caller knows, "" for any
	Seen   []string `json:"seen"`   // records
}

// Refeed stores backfills of a partition again, as the node saw them last, in the epoch that At names. It returns how many Redis had
// lost, or had not got as far. It returns ErrServer in another epoch.
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
