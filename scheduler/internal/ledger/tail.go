package ledger

import (
	"context"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Tail is the latest output of a run in flight.
type Tail struct {
	Job, Run string
	Token    locking.Token
	Output   []byte // jobs.MaxOutput bytes at most
}

type tailArgs struct {
	Runs []tailRun `json:"runs"`
}

type tailRun struct {
	ID    string `json:"id"`
	Token int64  `json:"token,string"`
}

// Tail stores tails beside their runs, all of one partition; the runs' ends replace them. It
// returns how many tails it stored: only runs in flight get one.
func (l *Ledger) Tail(ctx context.Context, part int, tails []Tail) (kept int, err error) {
	var args tailArgs
	outputs := make([]any, len(tails))
	for k, t := range tails {
		args.Runs, outputs[k] = append(args.Runs, tailRun{t.Run, t.Token}), t.Output
	}
	kept, err = tailScript.call(ctx, l.client, l.keys[part].tag, "", args, outputs...).Int()
	return kept, redisconn.Classify("keep tails", err)
}
