// Package settle is about a run from its grant to its end: renewals, output and checkpoints on the
// way, and the three ends of a lease. Settle ends a caller's own run, Unclaim hands one back whose
// function was not called, and Reap ends another node's run whose lease has lapsed.
package settle

import (
	"context"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	settleScript  = ledger.Ship("settle/settle", nil)
	renewScript   = ledger.Ship("settle/renew", nil)
	reapScript    = ledger.Ship("settle/reap", nil)
	unclaimScript = ledger.Ship("settle/unclaim", nil)
)

// The answers of Settle, Reap, Unclaim and Renew; besides ledger.Lost, ledger.NoSuchRun and
// ledger.StatusUnknownFormat.
const (
	Settled  ledger.Status = "settled"  // recorded now, or by this same report before
	Reaped   ledger.Status = "reaped"   // recorded as abandoned
	Alive    ledger.Status = "alive"    // renewed since it was seen, or not lapsed
	Gone     ledger.Status = "gone"     // ended meanwhile
	Returned ledger.Status = "returned" // pending again
	Renewed  ledger.Status = "renewed"  // the lease goes on
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
func Settle(ctx context.Context, l *ledger.Ledger, batch []Report) ([]ledger.Status, error) {
	n := within(batch)
	said, err := settle(ctx, l, batch[:n])
	for err == nil && n < len(batch) {
		var more []ledger.Status
		from := n
		n += within(batch[from:])
		more, err = settle(ctx, l, batch[from:n])
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

func settle(ctx context.Context, l *ledger.Ledger, batch []Report) ([]ledger.Status, error) {
	ks := settleScript.Each(l.Tag(batch[0].Job), len(batch), func(i int) string { return batch[i].Job })
	head := settleArgs{now: l.Believed(ctx), skew: l.Config.MaxSkew, keep: l.Config.Keep, keepFor: l.Config.KeepFor, server: l.Known}
	args := head.appendTo(make([]string, 0, settleArgsSize+reportsSize(batch)))
	return ledger.WordsOf("settle", len(batch), ledger.Evaluate(ctx, l.Client, settleScript, ks, appendReports(args, batch)))
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
	var token, started, ended ledger.Spelt
	for i := range batch {
		r := &batch[i]
		if r.plain() {
			item := settlePlain{job: r.Job, run: r.Run, started: started.Of(r.Started), ended: ended.Of(r.Ended)}
			if r.Token != 0 {
				item.token = token.Of(r.Token)
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
			item.fresh = ledger.NextAttemptID(r.Run)
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

// cut shortens an error text on a rune's border.
func cut(s string) string {
	if len(s) <= errorMax {
		return s
	}
	return strings.ToValidUTF8(s[:errorMax-3], "") + "..."
}
