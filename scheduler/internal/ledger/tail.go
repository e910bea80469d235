package ledger

import (
	"context"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Tail is the last of what a run that goes on has written.
type Tail struct {
	Job, Run string
	Token    locking.Token
	Output   []byte // jobs.MaxOutput bytes at most; empty to forget what was kept
}

// Tail keeps tails beside their runs, all of one partition; the ends of the runs replace them. It returns how many it has kept: those of runs that go on.
func (l *Ledger) Tail(ctx context.Context, part int, tails []Tail) (kept int, err error) {
	args := make([]string, 0, tailItemSize*len(tails))
	for _, t := range tails {
		item := tailItem{run: t.Run, token: t.Token, output: string(t.Output)}
		args = item.appendTo(args)
	}
	kept, err = evaluate(ctx, l.client, tailScript, tailScript.in(l.keys[part].tag, ""), args).Int()
	return kept, redisconn.Classify("keep tails", err)
}
