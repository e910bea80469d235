package ledger

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Verdict is the answer to one claim.
type Verdict uint8

// The answers a claim can get.
const (
	// Granted: run it; the answer carries the token.
	Granted Verdict = iota + 1
	// Skipped: the job was held, the tick was recorded as skipped(overlap); go on at Cursor.
	Skipped
	// Moved: the cursor stands at Cursor, or the pending run is gone.
	Moved
	// Early: the tick is not due by Redis' clock; ask again when it is.
	Early
	// Held: another run holds the job; a pending run, or a tick that was due before that run was
	// granted, waits for it. Ask again.
	Held
	// Superseded: another definition is the stored one.
	Superseded
	// Unknown: no such job; register it first.
	Unknown
	// Foreign: a record that this version does not understand, left alone.
	Foreign
)

var verdicts = map[string]Verdict{
	"granted": Granted, "skipped": Skipped, "moved": Moved, "early": Early, "held": Held,
	"superseded": Superseded, "unknown": Unknown, "foreign": Foreign,
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

// Claimer is who asks: the node's id (unique per process) and its name.
type Claimer struct {
	ID, Name string
}

// Claim asks for one run: of the next tick of a job, or, with Pending, of a pending run.
type Claim struct {
	Job    string
	Digest string        // of the caller's definition
	Run    string        // id made by the caller; for a pending run, its id
	TTL    time.Duration // of the lease
	// Pending says that Run is in pending; the fields below are then not used.
	Pending bool
	From    int64 // the cursor the caller sees, ms
	// Until and Missed: last and number of the ticks from From on that are recorded as missed;
	// 0 and 0 when Tick is From.
	Until, Missed int64
	Tick          int64 // to run, ms
	Next          int64 // the tick after it, ms; 0 when the schedule has no more
	Trigger       jobs.Trigger
}

// Answer is what the ledger said to one claim.
type Answer struct {
	Verdict Verdict
	Token   locking.Token // Granted
	Left    time.Duration // Granted: what is left of the lease
	Cursor  int64         // Skipped, Moved: ms, 0 when the schedule has no more
	Run     Lease         // Granted, pending: the run's record
	Detail  string        // Held: by which run; Superseded: by which definition
}

// Claim asks for a batch of runs, all of jobs in one partition and at most BatchMax, each job at
// most once. now is the caller's idea of Redis' time in ms. It returns one answer per claim, or
// ErrClock, or an error wrapping locking.ErrUnreachable after which the outcome is unknown: ask
// again with the same claims.
func (l *Ledger) Claim(ctx context.Context, by Claimer, now int64, batch []Claim) ([]Answer, error) {
	k := l.keys[l.Partition(batch[0].Job)]
	ks := append(make([]string, 0, 6+len(batch)), k.jobs, k.due, k.runs, k.leases, k.pending, k.waiting)
	keep, keepFor := l.keepArgs()
	args := append(make([]any, 0, 6+11*len(batch)), ms(now), ms(l.cfg.MaxSkew.Milliseconds()), by.ID, by.Name, keep, keepFor)
	for _, c := range batch {
		ks = append(ks, k.history+c.Job)
		args = append(args, c.args()...)
	}
	reply, err := claimScript.Run(ctx, l.client, ks, args...).Slice()
	if err != nil {
		return nil, redisconn.Explain("claim", err)
	}
	if err := refusedByClock(reply, now); err != nil {
		return nil, err
	}
	if len(reply) != 4*len(batch) {
		return nil, fmt.Errorf("claim: %d answers for %d claims", len(reply)/4, len(batch))
	}
	answers := make([]Answer, len(batch))
	for i := range batch {
		if answers[i], err = answerOf(reply[i*4 : i*4+4]); err != nil {
			return nil, fmt.Errorf("claim of %s: %w", batch[i].Job, err)
		}
	}
	return answers, nil
}

func (c Claim) args() []any {
	ttl := ms(c.TTL.Milliseconds())
	if c.Pending {
		return []any{"p", c.Job, c.Digest, c.Run, ttl, "", "", "", "", "", ""}
	}
	until := ""
	if c.Missed > 0 {
		until = ms(c.Until)
	}
	return []any{"t", c.Job, c.Digest, c.Run, ttl, ms(c.From), until, ms(c.Missed), ms(c.Tick), orNone(c.Next), c.Trigger.String()}
}

// orNone spells an instant that may be absent.
func orNone(n int64) string {
	if n == 0 {
		return ""
	}
	return ms(n)
}

func answerOf(reply []any) (Answer, error) {
	word := text(reply[0])
	a := Answer{Verdict: verdicts[word]}
	switch a.Verdict {
	case Granted:
		a.Token, a.Left = number(reply[1]), time.Duration(number(reply[2]))*time.Millisecond
		if record := text(reply[3]); record != "" {
			var err error
			if a.Run, err = parseLease("", record); err != nil {
				return a, err
			}
		}
	case Skipped, Moved:
		a.Cursor = number(reply[2])
	case Held, Superseded:
		a.Detail = text(reply[2])
	case Early, Unknown, Foreign:
	default:
		return a, fmt.Errorf("answer %q: not one this version knows", word)
	}
	return a, nil
}
