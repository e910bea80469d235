// Package claim requests runs: the next tick of a job, a pending run, a shard of an open tick. A
// claim is a compare-and-set step of the job's cursor, see package ledger.
package claim

import (
	"context"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

var postponeScript = ledger.Ship("claim/postpone", postponeArgs{})

var claimScript = ledger.Ship("claim/claim", nil)

// Verdict is the answer to one claim.
type Verdict uint8

// The answers a claim can get.
const (
	// Granted: run it; the answer carries the token.
	Granted Verdict = iota + 1
	// Opened: the tick of a sharded job is open, by this claim or by another node's, and Detail
	// names it. Its shards are pending, see ShardRun; go on at Cursor.
	Opened
	// Skipped: the job was held, the tick was recorded as skipped(overlap); go on at Cursor.
	Skipped
	// RecordedOnly: the skipped ticks of the claim were recorded, and the claim had no tick to run;
	// go on at Cursor. Of a pending run: the run was recorded as not run.
	RecordedOnly
	// Stale: the cursor stands at Cursor, or the skipped ticks do not fit Pause and Busy, or
	// the pending run is gone. Plan anew.
	Stale
	// Early: the tick is not due by Redis' clock; claim it again once it is.
	Early
	// JobBusy: another run holds the job, or a pause holds a pending run; claim again later.
	JobBusy
	// Superseded: another definition is the stored one.
	Superseded
	// Unknown: no such job; register it first.
	Unknown
	// Closed: a move has closed the partition, which grants nothing until the move is undone, or
	// for ever. Detail is ClosedError's text.
	Closed
	// VerdictUnknownFormat: a record that this version cannot read, left alone.
	VerdictUnknownFormat
)

var verdicts = map[string]Verdict{
	"granted": Granted, "opened": Opened, "skipped": Skipped, "passed": RecordedOnly, "stale": Stale, "early": Early, "held": JobBusy,
	"superseded": Superseded, "unknown": Unknown, "closed": Closed, "foreign": VerdictUnknownFormat,
}

// String is the word that the script answered.
func (v Verdict) String() string {
	for word, known := range verdicts {
		if known == v {
			return word
		}
	}
	return "verdict " + strconv.Itoa(int(v))
}

// Claimer is the caller of Claim: the node's id (unique per process) and its name.
type Claimer struct {
	ID, Name string
}

// AheadMax is how long before it is due a tick may be granted, as AHEAD in base.lua.
const AheadMax = 500 * time.Millisecond

// HeldByPause is the Detail of an answer JobBusy to a pending run that waits for the end of a
// pause.
const HeldByPause = "a pause"

// The Detail of an answer JobBusy when something is full: the outbox has too many events for
// followers, or the partition has too many pending runs.
const (
	HeldByOutbox    = "full outbox"
	HeldByPartition = "full partition"
)

// Claim is a request for one run: of the next tick of a job, or, with Pending, of a pending run.
// Without a Tick it only passes ticks.
type Claim struct {
	Job     string
	Digest  string        // of the caller's definition
	Run     string        // id made by the caller; for a pending run, its id
	TTL     time.Duration // of the lease
	Overlap jobs.Overlap
	// Attempts is how often a tick may be granted before a crash ends it: 1, or more with on_crash
	// rerun.
	Attempts int
	// Shards is how many parts the job's ticks are split into, and Params has one parameter for
	// each, or none. With more than one, the claim opens a tick, or a pending run that is not yet a
	// shard.
	Shards int
	Params []string
	// Pending: Run is in pending; of the fields below only Drop is then sent. Shard: Run is a shard
	// of an open tick.
	Pending, Shard bool
	// Drop records a pending run as missed for this reason in place of a grant, if the run is a
	// follower's and was never granted, or is a tick of the job's own that was handed back.
	Drop    string
	From    int64                 // the cursor the caller sees, ms
	Skipped []ledger.SkippedRange // ticks from From on that will not run, without a gap between them
	Tick    int64                 // to run, ms, the one after the passes; 0: none
	Next    int64                 // where the cursor goes, ms; 0 when the schedule has no more
	Trigger jobs.Trigger
	// MaxRuns is how many ticks of the job are run; 0: no bound. After so many the answer is
	// passed, with the Detail ReasonMaxRuns: nothing else of the claim was recorded, and the job
	// has no more ticks.
	MaxRuns int
}

// Answer is the ledger's answer to one claim.
type Answer struct {
	Verdict     Verdict
	Token       locking.Token // Granted
	Left        time.Duration // Granted: the rest of the lease
	Cursor      int64         // Opened, Skipped, RecordedOnly, Stale: ms, 0 when the schedule has no more
	Run         ledger.Run    // Granted, pending: the run's record; else its Attempt alone
	Pause, Busy ledger.Window // Stale: as stored, see Entry
	// Detail is, of Opened: the tick's id; of JobBusy: by which run, or one of HeldByPause,
	// HeldByOutbox and HeldByPartition; of Superseded: by which definition; of RecordedOnly, for a
	// pending run: its outcome and the reason, parted by a comma; of a tick, ReasonMaxRuns for
	// that.
	Detail string
	// Unconfirmed is, for Granted, why the run must not begin: fewer replicas have the grant than
	// Confirming requires. Hand the run back, see Unclaim.
	Unconfirmed error
}

// Send requests a batch of runs of jobs in one partition, at most BatchMax, each job but for its
// shards once. now is the caller's idea of Redis' time, ms. It returns one answer per claim, or
// ErrClock, ErrServer, or an error wrapping locking.ErrUnreachable: then the outcome is unknown,
// and the caller repeats the same claims.
func Send(ctx context.Context, l *ledger.Ledger, by Claimer, now int64, batch []Claim) ([]Answer, error) {
	k := l.Keys[l.Partition(batch[0].Job)]
	ks := claimScript.Each(k.Tag, len(batch), func(i int) string { return batch[i].Job })
	head := claimArgs{now: now, skew: l.Config.MaxSkew, node: by.ID, name: by.Name, keep: l.Config.Keep, keepFor: l.Config.KeepFor, server: l.Known,
		short: shortLease(l)}
	args := head.appendTo(make([]string, 0, claimArgsSize+claimsSize(batch)))
	reply, unconfirmed, err := send(ctx, l, k, ks, appendClaims(args, batch))
	if err != nil {
		return nil, redisconn.Classify("claim", err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return nil, err
	}
	answers, err := claimAnswers(l, reply, batch)
	for i := range answers {
		if answers[i].Verdict == Granted {
			answers[i].Unconfirmed = unconfirmed
		}
	}
	return answers, err
}

// shortLease is how long a lease lasts at most that was never renewed.
func shortLease(l *ledger.Ledger) time.Duration { return max(5*time.Second, 3*l.Config.MaxSkew) }

// FirstLease is how long a granted lease of that ttl lasts until it is renewed: the ttl, but no
// more than 5 s, or three times MaxSkew where that is longer. The first renewal gives it its ttl.
func FirstLease(l *ledger.Ledger, ttl time.Duration) time.Duration { return min(ttl, shortLease(l)) }

// GrantedRun is the record of the run of an answer Granted, as the ledger keeps it. now is Redis'
// time, ms.
func (c Claim) GrantedRun(a Answer, by Claimer, now int64) ledger.Run {
	l := a.Run
	if !c.Pending {
		l = ledger.Run{
			Job: c.Job, Tick: c.Tick, Shards: 1, Attempt: a.Run.Attempt, Node: by.ID, NodeName: by.Name, TTL: c.TTL.Milliseconds(),
			Prev: c.Tick, Next: c.Next, Trigger: c.Trigger.String(), Granted: now, Overlap: mode(c.Overlap), Attempts: max(1, c.Attempts),
		}
	}
	l.ID, l.Token = c.Run, a.Token
	return l
}

// ShardRun is the run id of a shard of an open tick, from 0. Its later attempts have ids by
// NextAttemptID.
func ShardRun(tick string, shard int) string { return tick + "." + strconv.Itoa(shard) }

type postponeArgs struct {
	Job  string `json:"job"`
	Seen int64  `json:"seen"`      // the due time that the caller saw, ms
	At   int64  `json:"at,string"` // the next look, ms
}

// Postpone puts off the next look at an overdue job that no living node holds until an instant, ms.
func Postpone(ctx context.Context, l *ledger.Ledger, seen query.Late, until int64) error {
	args := postponeArgs{seen.Job, seen.Cursor, until}
	err := postponeScript.Call(ctx, l.Client, l.Tag(seen.Job), "", args).Err()
	return redisconn.Classify("put off "+seen.Job, err)
}
