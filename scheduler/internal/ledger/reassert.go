package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
)

// The words of Reassert; besides Lost and Strange.
const (
	Known     Status = "known"      // the ledger has the run
	Restored  Status = "restored"   // the ledger has it again
	Ended     Status = "ended"      // its end is recorded
	Behind    Status = "behind"     // the cursor stands before its tick; other nodes may know why
	OtherDef  Status = "superseded" // another definition is the stored one
	NoSuchJob Status = "unknown"    // register it first
)

// Assertion is a run that its node was granted, by the server before this one or by this one before it was restarted.
type Assertion struct {
	Digest string // of the definition that it was granted by
	Lease  Lease  // as granted; Until and Beat are not used
	Ended  int64  // when it ended, ms, and Settle will say how; 0 while it goes on
	// Gap are the ticks from the cursor up to this run's, of which nobody has said anything: they are recorded as missed
	// for ReasonFailover. Without it, or with one that does not begin at the cursor, the answer is Behind when there are any.
	// Of a Pass, First, Last and Count are used.
	Gap *SkippedRange
	// Of a shard, how to open its tick anew if that was lost: the job's parameters, one for each of Lease.Shards or none,
	// and where the cursor goes, see Next. Without Reopen a lost tick leaves its shards Lost.
	Reopen bool
	Params []string
	// Next is the tick after this run's, ms, 0 when the schedule has no more. It is for runs that are no step of the cursor
	// themselves: shards, and attempts after the first, which become one when all attempts before them are lost.
	Next int64
}

// Asserted is the answer to an Assertion.
type Asserted struct {
	Word   Status
	Cursor int64 // Behind: where the job stands, ms
}

// Reassert says to the server of this id which runs were granted before, all of jobs in one partition and at most
// BatchMax: those that it lost are restored, each with its step of the cursor. It may be repeated. now is the
// caller's idea of Redis' time, ms. It returns ErrClock, or ErrServer when that is not the server.
func (l *Ledger) Reassert(ctx context.Context, now int64, server string, batch []Assertion) ([]Asserted, error) {
	all := make([]Asserted, 0, len(batch))
	for page := range slices.Chunk(batch, pageMax) { // each that was lost may have the script read all runs of the partition
		some, err := l.reassert(ctx, now, server, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (l *Ledger) reassert(ctx context.Context, now int64, server string, batch []Assertion) ([]Asserted, error) {
	head := reassertArgs{now, l.cfg.MaxSkew, l.cfg.Keep, l.cfg.KeepFor, server}
	args := head.appendTo(make([]string, 0, reassertArgsSize+reassertItemSize*len(batch)))
	for i := range batch {
		args = batch[i].appendTo(args)
	}
	ks := reassertScript.each(l.tag(batch[0].Lease.Job), len(batch), func(i int) string { return batch[i].Lease.Job })
	reply, err := evaluate(ctx, l.client, reassertScript, ks, args).Slice()
	if err != nil {
		return nil, redisconn.Classify("reassert", err)
	}
	if err := refused(reply, now); err != nil {
		return nil, fmt.Errorf("reassert: %w", err)
	}
	if len(reply) != 2*len(batch) {
		return nil, fmt.Errorf("reassert: %d answers for %d runs", len(reply)/2, len(batch))
	}
	out := make([]Asserted, len(batch))
	for i := range batch {
		out[i] = Asserted{Status(text(reply[2*i])), number(reply[2*i+1])}
	}
	return out, nil
}

func (a *Assertion) appendTo(args []string) []string {
	item := reassertItem{job: a.Lease.Job, digest: a.Digest, id: a.Lease.Run, record: a.Lease.granted(), gap: a.Gap.text(), next: a.Next, ended: a.Ended}
	if a.Reopen {
		item.parts = (&Claim{Shards: a.Lease.Shards, Params: a.Params}).parts()
	}
	return item.appendTo(args)
}

// granted is the record of a lease from 'job' on, as it was granted.
func (l Lease) granted() string {
	l.Until, l.Beat = 0, 0
	return strings.TrimPrefix(l.runText(), "1|0|0|")
}
