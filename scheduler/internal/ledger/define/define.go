// Package define stores what jobs are. Define registers the definitions of a node, Announce notes
// which definitions nodes hold, and a promotion (Begin, Raise, Switch, Promoted) makes another
// generation's definitions current. Tidy deletes definitions that are of no more use.
package define

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var defineScript = ledger.Ship("define/define", nil)

// Definition is one job's definition as a node wants it stored.
type Definition struct {
	Job, Digest, Revision string
	Generation            string // of the node, or that is promoted
	// Text is the definition's JSON. It may be left out where it may be stored already: the answer
	// is missing if it is not.
	Text   []byte
	Cursor int64 // first tick of its schedule after now, ms; 0 for none
	// To replace a stored definition: its digest and cursor as the caller has read them, and the
	// last and number of its due ticks that will not run. A zero WasDigest only creates.
	WasDigest string
	WasCursor int64
	// With Count 0, Until may name the latest instant accounted for; it is then not recorded.
	Until, Count int64
	// Upcoming is the first tick of the stored definition after the Count ticks, ms; 0 for none. If
	// it has come due by the time Redis acts, the answer is differs: it must not be passed over.
	Upcoming int64
	// Same: the schedule is the stored definition's. The cursor then stays, no tick is passed, and
	// of the fields above only WasDigest counts.
	Same bool
	// Old is the schedule of the stored definition as text, kept with the row of the replacement.
	Old string
}

// Defined is the answer to one Definition.
type Defined struct {
	Status   string // created, same, replaced, missing, differs, standby, foreign
	Cursor   int64  // of the entry as it now stands, ms
	Digest   string
	Revision string
	Text     []byte // differs: the current definition
	Last     int64  // latest instant ever accounted for, ms; 0 for none
	// Stored: with differs, the caller's definition is stored all the same. It was current before,
	// or its generation was on standby.
	Stored bool
}

// Define registers definitions of jobs in one partition, at most BatchMax, and returns one answer
// each. A new job gets an entry that starts at Cursor. A stored definition is replaced by compare-
// and-set (WasDigest, WasCursor); the first tick of the new one must lie after now and after every
// instant accounted for. Define returns ErrClock or ErrClosed.
func Define(ctx context.Context, l *ledger.Ledger, now int64, batch []Definition) ([]Defined, error) {
	return define(ctx, l, now, "", batch)
}

// Switch is Define for a promotion: it also creates jobs that the active generation does not have.
// After a later promotion with a higher epoch, the answer is standby.
func Switch(ctx context.Context, l *ledger.Ledger, now, epoch int64, batch []Definition) ([]Defined, error) {
	return define(ctx, l, now, ledger.Spell(epoch), batch)
}

func define(ctx context.Context, l *ledger.Ledger, now int64, epoch string, batch []Definition) ([]Defined, error) {
	head := defineArgs{now, l.Config.MaxSkew, l.Config.Keep, l.Config.KeepFor, epoch}
	args := head.appendTo(make([]string, 0, defineArgsSize+defineItemSize*len(batch)))
	for i := range batch {
		d := &batch[i]
		item := defineItem{
			job: d.Job, digest: d.Digest, revision: d.Revision, cursor: d.Cursor, wasDigest: d.WasDigest, wasCursor: d.WasCursor,
			last: d.Until, count: d.Count, upcoming: d.Upcoming, old: d.Old, generation: d.Generation, same: d.Same, text: d.Text,
		}
		if d.Count == 0 {
			item.last = 0 // it is not recorded
		}
		args = item.appendTo(args)
	}
	ks := defineScript.Each(l.Tag(batch[0].Job), len(batch), func(i int) string { return batch[i].Job })
	reply, err := ledger.Evaluate(ctx, l.Client, defineScript, ks, args).Slice()
	if err != nil {
		return nil, redisconn.Classify("define", err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return nil, err
	}
	if len(reply) != 7*len(batch) {
		return nil, fmt.Errorf("define: %d answers for %d definitions", len(reply)/7, len(batch))
	}
	out := make([]Defined, len(batch))
	for i := range out {
		r := reply[i*7:]
		out[i] = Defined{Status: ledger.Text(r[0]), Cursor: ledger.Number(r[1]), Digest: ledger.Text(r[2]), Revision: ledger.Text(r[3]),
			Text: []byte(ledger.Text(r[4])), Last: ledger.Number(r[5]), Stored: ledger.Text(r[6]) != ""}
	}
	return out, nil
}
