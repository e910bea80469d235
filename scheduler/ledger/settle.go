package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Word is the answer to one item of Settle, Reap, Unclaim or Renew.
type Word string

// The words of Settle, Reap, Unclaim and Renew.
const (
	Settled   Word = "settled"  // recorded now, or by this same report before
	Lost      Word = "lost"     // somebody else ended the run first
	NoSuchRun Word = "unknown"  // nobody knows this run any more
	Strange   Word = "foreign"  // a record that this version does not understand
	Reaped    Word = "reaped"   // recorded as abandoned
	Alive     Word = "alive"    // renewed since it was seen, or not lapsed
	Gone      Word = "gone"     // ended meanwhile
	Returned  Word = "returned" // pending again
	Renewed   Word = "renewed"  // the lease goes on
)

// errorMax is what is kept of a run's error text, in bytes.
const errorMax = 2048

// Report is the end of one run, as its node saw it.
type Report struct {
	Job, Run       string
	Token          locking.Token // of the grant; 0 for whichever it was
	Outcome        jobs.Outcome
	Reason         string // few words, may be empty
	Started, Ended int64  // by the node's idea of Redis' clock, ms
	Tries          int
	Error          string // cut to 2 KiB
	Output         []byte // the last bytes of it are kept, see jobs.MaxOutput
	// Rerun says that this end is one which on_crash rerun answers with another attempt, the run's
	// Successor. Without attempts left it changes nothing.
	Rerun bool
}

// Settle ends a batch of runs, all of jobs in one partition and at most BatchMax, and returns
// Settled, Lost, NoSuchRun or Strange for each. After an error the outcome is unknown: repeat
// the same reports. ErrServer is one after which it is known: nothing was done.
func (l *Ledger) Settle(ctx context.Context, batch []Report) ([]Word, error) {
	p := l.Partition(batch[0].Job)
	k := l.keys[p]
	ks := append(make([]string, 0, 9+len(batch)), k.ending()...)
	keep, keepFor := l.keepArgs()
	args := append(make([]any, 0, 3+11*len(batch)), keep, keepFor, at(l.known, p))
	for _, r := range batch {
		fresh := ""
		if r.Rerun {
			fresh = Successor(r.Run)
		}
		ks = append(ks, k.history+r.Job)
		args = append(args, r.Job, r.Run, orNone(r.Token), r.Outcome.String(), plain(r.Reason), ms(r.Started), ms(r.Ended),
			strconv.Itoa(r.Tries), cut(r.Error), r.Output[max(0, len(r.Output)-jobs.MaxOutput):], fresh)
	}
	return words("settle", len(batch))(settleScript.Run(ctx, l.client, ks, args...).Slice())
}

// ending are the keys of the scripts that end runs, in their order.
func (k keys) ending() []string {
	return []string{k.jobs, k.runs, k.leases, k.pending, k.waiting, k.kept, k.cancels, k.outbox, k.followers}
}

// Successor is the run id of the attempt that follows a run, after a crash or by an operator's wish,
// and the one under which a run is pending again that was handed back. It follows from the old id,
// so that whoever asks for it, however often, names one run.
func Successor(run string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String() }

// handBacks is how often a run may be handed back and is still known by the id that was asked for.
const handBacks = 16

// successors are the ids under which a run is pending or going when it was handed back.
func successors(run string) []any {
	ids := make([]any, handBacks)
	for i := range ids {
		run = Successor(run)
		ids[i] = run
	}
	return ids
}

// words reads a reply of one word per item.
func words(op string, n int) func([]any, error) ([]Word, error) {
	return func(reply []any, err error) ([]Word, error) {
		if err != nil {
			return nil, redisconn.Explain(op, err)
		}
		if err := refused(reply, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if len(reply) != n {
			return nil, fmt.Errorf("%s: %d answers for %d items", op, len(reply), n)
		}
		out := make([]Word, n)
		for i, w := range reply {
			out[i] = Word(text(w))
		}
		return out, nil
	}
}

var separators = strings.NewReplacer("|", "/", "\n", " ")

// plain keeps a short text out of the way of the records' separator.
func plain(s string) string { return separators.Replace(s) }

// cut shortens an error text on a rune's border.
func cut(s string) string {
	if len(s) <= errorMax {
		return s
	}
	return strings.ToValidUTF8(s[:errorMax-3], "") + "..."
}
