package claim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// claimsSize is how many arguments a batch is sent as.
func claimsSize(batch []Claim) (n int) {
	for i := range batch {
		if batch[i].plain() {
			n += claimPlainSize
		} else {
			n += claimOtherSize
		}
	}
	return n
}

// appendClaims appends the arguments of a batch. Terms and instants that neighbours share are spelt
// once.
func appendClaims(args []string, batch []Claim) []string {
	var terms string
	var tick, next ledger.Spelt
	for i := range batch {
		c := &batch[i]
		if !c.plain() {
			args = c.appendTo(args)
			continue
		}
		if terms == "" || !c.likewise(&batch[i-1]) {
			terms = c.terms()
		}
		item := claimPlain{terms: terms, job: c.Job, digest: c.Digest, run: c.Run, tick: tick.Of(c.Tick), next: next.Of(c.Next)}
		args = item.appendTo(args)
	}
	return args
}

// plain reports whether the claim is for one due tick: nothing passed, no shards, no bound of the
// ticks, and another tick after it. Nearly all claims are.
func (c *Claim) plain() bool {
	return !c.Pending && c.Shards < 2 && len(c.Skipped) == 0 && c.Tick != 0 && c.Tick == c.From && c.Next != 0 && c.MaxRuns == 0
}

// likewise reports whether two plain claims have the same terms.
func (c *Claim) likewise(d *Claim) bool {
	return d.plain() && c.TTL == d.TTL && c.Overlap == d.Overlap && c.Attempts == d.Attempts && c.Trigger == d.Trigger
}

func (c *Claim) terms() string {
	return ledger.Spell(c.TTL.Milliseconds()) + "|" + mode(c.Overlap) + "|" + strconv.Itoa(max(1, c.Attempts)) + "|" + c.Trigger.String()
}

func (c *Claim) appendTo(args []string) []string {
	item := claimOther{job: c.Job, digest: c.Digest, run: c.Run, ttl: c.TTL, mode: mode(c.Overlap), most: max(1, c.Attempts)}
	if !c.Shard {
		item.parts = ledger.ShardsText(c.Shards, c.Params)
	}
	switch {
	case !c.Pending:
		item.kind, item.from, item.passes, item.tick, item.next, item.trigger = "t", ledger.Spell(c.From), passesText(c.Skipped), c.Tick, c.Next, c.Trigger.String()
		item.bound = c.MaxRuns
	case c.Shard:
		item.kind, item.from = "s", c.Drop
	default:
		item.kind, item.from = "p", c.Drop
	}
	return item.appendTo(args)
}

// mode is an overlap policy as the scripts know it: the first letter of its word.
func mode(o jobs.Overlap) string { return o.String()[:1] }

// passesText is passes as claim.lua reads them.
func passesText(passes []ledger.SkippedRange) string {
	if len(passes) == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range passes {
		fmt.Fprintf(&b, "%s,%s,%d,%d,%d,%s;", p.Outcome, p.Reason, p.First, p.Last, p.Count, ledger.SpellOrNone(p.Next))
	}
	return b.String()
}

// claimAnswers reads the answers to a batch.
func claimAnswers(l *ledger.Ledger, reply []any, batch []Claim) ([]Answer, error) {
	if len(reply) < 2 {
		return nil, errors.New("claim: no answer")
	}
	tokens, now, others := ledger.Text(reply[0]), ledger.Number(reply[1]), reply[2:]
	answers := make([]Answer, len(batch))
	for i := range batch {
		var token string
		var more bool
		if token, tokens, more = strings.Cut(tokens, ","); more != (i < len(batch)-1) || token == "" && len(others) < 4 {
			return nil, fmt.Errorf("claim: an answer that is too short or too long for %d claims", len(batch))
		}
		if token != "" {
			answers[i] = granted(l, &batch[i], token, now)
			continue
		}
		var err error
		if answers[i], err = answerOf(others[:4]); err != nil {
			return nil, fmt.Errorf("claim of %s: %w", batch[i].Job, err)
		}
		others = others[4:]
	}
	return answers, nil
}

// granted is the answer to a plain tick whose lease counts from the tick, or from Redis' time now
// where that is later.
func granted(l *ledger.Ledger, c *Claim, token string, now int64) Answer {
	left := FirstLease(l, c.TTL).Truncate(time.Millisecond) + redisconn.Duration(max(0, c.Tick-now), time.Millisecond)
	n, _ := strconv.ParseInt(token, 10, 64)
	return Answer{Verdict: Granted, Token: n, Left: left, Run: ledger.Run{Attempt: 1}}
}

func answerOf(reply []any) (Answer, error) {
	word := ledger.Text(reply[0])
	a := Answer{Verdict: verdicts[word]}
	switch a.Verdict {
	case Granted:
		a.Token, a.Left = ledger.Number(reply[1]), redisconn.Duration(ledger.Number(reply[2]), time.Millisecond)
		a.Run.Attempt = 1
		if record := ledger.Text(reply[3]); strings.Contains(record, "|") {
			var err error
			if a.Run, err = ledger.ParseRun("", record); err != nil {
				return a, err
			}
		} else if record != "" {
			a.Run.Attempt = int(ledger.Number(record))
		}
	case Opened, Skipped, RecordedOnly:
		a.Cursor, a.Detail = ledger.Number(reply[2]), ledger.Text(reply[3])
	case Stale:
		a.Cursor = ledger.Number(reply[2])
		pause, busy, _ := strings.Cut(ledger.Text(reply[3]), "|")
		a.Pause, a.Busy = ledger.WindowOf(pause), ledger.WindowOf(busy)
	case Closed:
		a.Detail = ledger.ClosedBy(ledger.Text(reply[2])).Error()
	case JobBusy, Superseded:
		a.Detail = ledger.Text(reply[2])
	case Early, Unknown, VerdictUnknownFormat:
	default:
		return a, fmt.Errorf("answer %q: not one this version knows", word)
	}
	return a, nil
}

// claimWait is how long a claim waits for replicas.
const claimWait = 500 * time.Millisecond

// send runs the claim script in a partition. unconfirmed is why the grants are to be handed back,
// nil when enough replicas have them.
func send(ctx context.Context, l *ledger.Ledger, k ledger.Keys, ks, args []string) (reply []any, unconfirmed, err error) {
	if l.Confirm == 0 {
		reply, err = ledger.Evaluate(ctx, l.Client, claimScript, ks, args).Slice()
		return reply, nil, err
	}
	cmd, copies, unknown := claimScript.RunAndWait(ctx, l.Client, confirmation(l, k), ks, ledger.AppendPlaces(nil, args)...)
	reply, err = cmd.Slice()
	return reply, lack(l, copies, unknown), err
}

// confirmation is the wait of a claim in a partition.
func confirmation(l *ledger.Ledger, k ledger.Keys) redisconn.Wait {
	return redisconn.Wait{Replicas: l.Confirm, Most: claimWait, Touch: k.Confirm}
}

// lack is the error of too few copies, or of not knowing how many there are; nil when there are
// enough.
func lack(l *ledger.Ledger, copies int, unknown error) error {
	switch {
	case unknown != nil:
		return redisconn.Classify("wait for replicas", unknown)
	case copies < l.Confirm:
		return fmt.Errorf("%w: only %d of the %d replicas have what was written that are to confirm it", locking.ErrUnreachable, copies, l.Confirm)
	}
	return nil
}

// Confirmed returns nil when enough replicas have the latest writes of a partition's master: a
// claim would be confirmed.
func Confirmed(ctx context.Context, l *ledger.Ledger, part int) error {
	master, err := redisconn.Master(ctx, l.Client, l.Keys[part].Confirm)
	if err != nil {
		return redisconn.Classify("wait for replicas", err)
	}
	pipe := master.Pipeline()
	copies := confirmation(l, l.Keys[part]).Queue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	n, unknown := copies()
	return lack(l, n, unknown)
}
