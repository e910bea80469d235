package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Status is the answer to one item of Settle, Reap, Unclaim or Renew.
type Status string

// The words of Settle, Reap, Unclaim and Renew.
const (
	Settled             Status = "settled"  // recorded now, or by this same report before
	Lost                Status = "lost"     // another node ended the run first
	NoSuchRun           Status = "unknown"  // no record of this run any more
	StatusUnknownFormat Status = "foreign"  // a record that this version cannot read
	Reaped              Status = "reaped"   // recorded as abandoned
	Alive               Status = "alive"    // renewed since it was seen, or not lapsed
	Gone                Status = "gone"     // ended meanwhile
	Returned            Status = "returned" // pending again
	Renewed             Status = "renewed"  // the lease goes on
)

// errorMax bounds the stored text of a run's error, in bytes.
const errorMax = 2048

// outputsMax bounds the output that the reports of one script call bring, in bytes: Redis serves no
// other call meanwhile.
const outputsMax = 1 << 20

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
	Result         []byte // of a success: JSON that jobs which follow get as their payload
	// Rerun: on_crash rerun answers this end with another attempt, the run's NextAttemptID. It
	// changes nothing without attempts left, and when the run has succeeded.
	Rerun bool
	// Saved is the run whose checkpoint is deleted when this run has succeeded: itself, or an
	// attempt before it; "" for none.
	Saved string
	// RetryIn: with Rerun, retry on another node wants the next attempt, after this wait. The
	// attempts left for a crash do not bound it.
	RetryIn time.Duration
}

// Settle ends a batch of runs of jobs in one partition, at most BatchMax, and returns Settled,
// Lost, NoSuchRun or StatusUnknownFormat for each. After an error the outcome is unknown, and the
// caller repeats the same reports; after ErrServer nothing was done.
func (l *Ledger) Settle(ctx context.Context, batch []Report) ([]Status, error) {
	n := within(batch)
	said, err := l.settle(ctx, batch[:n])
	for err == nil && n < len(batch) {
		var more []Status
		from := n
		n += within(batch[from:])
		more, err = l.settle(ctx, batch[from:n])
		said = append(said, more...)
	}
	if err != nil {
		return nil, err
	}
	return said, nil
}

// within is how many reports, one at least, go into one script call.
func within(batch []Report) int {
	size := 0
	for i := range batch {
		if size += min(len(batch[i].Output), jobs.MaxOutput); size > outputsMax && i > 0 {
			return i
		}
	}
	return len(batch)
}

func (l *Ledger) settle(ctx context.Context, batch []Report) ([]Status, error) {
	ks := settleScript.each(l.tag(batch[0].Job), len(batch), func(i int) string { return batch[i].Job })
	head := settleArgs{now: l.believed(ctx), skew: l.cfg.MaxSkew, keep: l.cfg.Keep, keepFor: l.cfg.KeepFor, server: l.known}
	args := head.appendTo(make([]string, 0, settleArgsSize+reportsSize(batch)))
	return wordsOf("settle", len(batch), evaluate(ctx, l.client, settleScript, ks, appendReports(args, batch)))
}

// reportsSize is how many arguments a batch is sent as.
func reportsSize(batch []Report) (n int) {
	for i := range batch {
		if batch[i].plain() {
			n += settlePlainSize
		} else {
			n += settleOtherSize
		}
	}
	return n
}

// appendReports spells out a batch as settle.lua reads it.
func appendReports(args []string, batch []Report) []string {
	var token, started, ended spelt
	for i := range batch {
		r := &batch[i]
		if r.plain() {
			item := settlePlain{job: r.Job, run: r.Run, started: started.of(r.Started), ended: ended.of(r.Ended)}
			if r.Token != 0 {
				item.token = token.of(r.Token)
			}
			args = item.appendTo(args)
			continue
		}
		item := settleOther{outcome: r.Outcome, job: r.Job, run: r.Run, token: r.Token, reason: r.Reason, started: r.Started, ended: r.Ended,
			tries: r.Tries, error: cut(r.Error), output: r.Output[max(0, len(r.Output)-jobs.MaxOutput):], result: r.Result}
		switch {
		case r.Outcome == jobs.OutcomeSucceeded:
			item.fresh = r.Saved
		case r.Rerun:
			item.fresh = NextAttemptID(r.Run)
			if r.RetryIn > 0 {
				item.pause = max(1, r.RetryIn.Milliseconds())
			}
		}
		args = item.appendTo(args)
	}
	return args
}

// plain reports whether a run succeeded at the first try and left nothing to keep. Nearly all do.
func (r *Report) plain() bool {
	return r.Outcome == jobs.OutcomeSucceeded && r.Tries == 1 && r.Reason == "" && r.Error == "" && len(r.Output) == 0 && len(r.Result) == 0 && !r.Rerun && r.Saved == ""
}

// NextAttemptID is the id under which a run goes on: its next attempt, or the run itself after it
// was handed back. The id follows from the old one, so that all callers name the same run.
func NextAttemptID(run string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String() }

// handBacks is how often a run may be handed back and is still found by its first id.
const handBacks = 16

// successors are the ids of a run that was handed back again and again.
func laterAttemptIDs(run string) []string {
	ids := make([]string, handBacks)
	for i := range ids {
		run = NextAttemptID(run)
		ids[i] = run
	}
	return ids
}

// words reads a reply of one word per item.
func words(op string, n int) func([]any, error) ([]Status, error) {
	return func(reply []any, err error) ([]Status, error) {
		if err != nil {
			return nil, redisconn.Classify(op, err)
		}
		if err := refused(reply, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if len(reply) != n {
			return nil, fmt.Errorf("%s: %d answers for %d items", op, len(reply), n)
		}
		out := make([]Status, n)
		for i, w := range reply {
			out[i] = Status(text(w))
		}
		return out, nil
	}
}

// wordsOf reads a reply of one word per item that are one text, parted by commas; or a refusal.
func wordsOf(op string, n int, cmd *redis.Cmd) ([]Status, error) {
	reply, err := cmd.Result()
	list, isText := reply.(string)
	if err != nil || !isText {
		return words(op, n)(cmd.Slice())
	}
	out := make([]Status, 0, n)
	for word := range strings.SplitSeq(list, ",") {
		out = append(out, Status(word))
	}
	if len(out) != n {
		return nil, fmt.Errorf("%s: %d answers for %d items", op, len(out), n)
	}
	return out, nil
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
