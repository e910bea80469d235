package epoch

import (
	"context"
	"fmt"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var reassertScript = ledger.Ship("epoch/reassert", nil)

// The words of Reassert; besides Lost and StatusUnknownFormat.
const (
	Known     ledger.Status = "known"      // the ledger has the run
	Restored  ledger.Status = "restored"   // the ledger has it again
	Ended     ledger.Status = "ended"      // its end is recorded
	Behind    ledger.Status = "behind"     // the cursor stands before its tick; other nodes may know why
	OtherDef  ledger.Status = "superseded" // another definition is the stored one
	NoSuchJob ledger.Status = "unknown"    // register it first
)

// Assertion is a run that its node was granted before Redis failed over or was restarted.
type Assertion struct {
	Digest string     // of the definition that it was granted by
	Run    ledger.Run // as granted; Until and Beat are not used
	Ended  int64      // when it ended, ms, with Settle's report still to come; 0 while it is in flight
	// Gap are the ticks from the cursor up to this run's that no node accounts for, by First, Last
	// and Count: they are recorded as missed for ReasonFailover. If there are such ticks and Gap
	// does not begin at the cursor, the answer is Behind.
	Gap *ledger.SkippedRange
	// Reopen, of a shard, opens its tick again if Redis has lost it, with the job's parameters, one
	// for each of Run.Shards or none, and with Next. Without Reopen the shards of a lost tick are
	// Lost.
	Reopen bool
	Params []string
	// Next is the tick after this run's, ms, 0 when the schedule has no more. Shards and later
	// attempts need it: one of them becomes the step of the cursor when all attempts before it are
	// lost.
	Next int64
}

// Asserted is the answer to an Assertion.
type Asserted struct {
	Status ledger.Status
	Cursor int64 // Behind: where the job stands, ms
}

// Reassert reports runs of jobs in one partition, at most BatchMax, in the epoch that At names,
// after a failover. Runs that the server has lost are restored, each with its step of the cursor.
// Reassert may be repeated. now is the caller's idea of Redis' time, ms. It returns ErrClock, or
// ErrServer in another epoch.
func Reassert(ctx context.Context, l *ledger.Ledger, now int64, batch []Assertion) ([]Asserted, error) {
	all := make([]Asserted, 0, len(batch))
	for page := range slices.Chunk(batch, ledger.PageMax) { // each that was lost may have the script read all runs of the partition
		some, err := reassert(ctx, l, now, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func reassert(ctx context.Context, l *ledger.Ledger, now int64, batch []Assertion) ([]Asserted, error) {
	head := reassertArgs{now, l.Config.MaxSkew, l.Config.Keep, l.Config.KeepFor, l.Known}
	args := head.appendTo(make([]string, 0, reassertArgsSize+reassertItemSize*len(batch)))
	for i := range batch {
		args = batch[i].appendTo(args)
	}
	ks := reassertScript.Each(l.Tag(batch[0].Run.Job), len(batch), func(i int) string { return batch[i].Run.Job })
	reply, err := ledger.Evaluate(ctx, l.Client, reassertScript, ks, args).Slice()
	if err != nil {
		return nil, redisconn.Classify("reassert", err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return nil, fmt.Errorf("reassert: %w", err)
	}
	if len(reply) != 2*len(batch) {
		return nil, fmt.Errorf("reassert: %d answers for %d runs", len(reply)/2, len(batch))
	}
	out := make([]Asserted, len(batch))
	for i := range batch {
		out[i] = Asserted{ledger.Status(ledger.Text(reply[2*i])), ledger.Number(reply[2*i+1])}
	}
	return out, nil
}

func (a *Assertion) appendTo(args []string) []string {
	item := reassertItem{job: a.Run.Job, digest: a.Digest, id: a.Run.ID, record: a.Run.GrantedText(), gap: a.Gap.Text(), next: a.Next, ended: a.Ended}
	if a.Reopen {
		item.parts = ledger.ShardsText(a.Run.Shards, a.Params)
	}
	return item.appendTo(args)
}
