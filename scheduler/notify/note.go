package notify

import (
	"encoding/json"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// counts are how many runs of a job have ended badly, by kind, and how many have succeeded.
type counts struct {
	Failed    int64 `json:"f,omitempty"`
	Abandoned int64 `json:"a,omitempty"`
	Missed    int64 `json:"m,omitempty"`
	Succeeded int64 `json:"s,omitempty"`
	Cancelled int64 `json:"c,omitempty"` // also for a stall
}

func countsOf(e ledger.Entry) counts {
	c := e.Counts
	return counts{
		Failed:    c[jobs.OutcomeFailed] + c[jobs.OutcomeTimedOut] + c[jobs.OutcomeLost],
		Abandoned: c[jobs.OutcomeAbandoned], Missed: c[jobs.OutcomeMissed], Succeeded: c[jobs.OutcomeSucceeded], Cancelled: c[jobs.OutcomeCancelled],
	}
}

func (c counts) of(k Kind) int64 {
	switch k {
	case Failed:
		return c.Failed
	case Abandoned:
		return c.Abandoned
	default:
		return c.Missed
	}
}

// bad is how many runs and ticks have ended badly.
func (c counts) bad() int64 { return c.Failed + c.Abandoned + c.Missed }

// since returns the increase over before; a job that was removed and made anew begins at nothing.
func (c counts) since(before counts) counts {
	if c.Failed < before.Failed || c.Abandoned < before.Abandoned || c.Missed < before.Missed || c.Succeeded < before.Succeeded || c.Cancelled < before.Cancelled {
		return c
	}
	return counts{c.Failed - before.Failed, c.Abandoned - before.Abandoned, c.Missed - before.Missed, c.Succeeded - before.Succeeded, c.Cancelled - before.Cancelled}
}

// outcomeKinds are the kinds of bad ends of a run or a tick; a success ends them.
var outcomeKinds = []Kind{Failed, Abandoned, Missed}

// kindOf is the kind of an outcome, "" for none.
func kindOf(o jobs.Outcome) Kind {
	switch o { //nolint:exhaustive // other outcomes are neither good nor bad
	case jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost:
		return Failed
	case jobs.OutcomeAbandoned:
		return Abandoned
	case jobs.OutcomeMissed:
		return Missed
	}
	return ""
}

// keepWell is how long a recovered job's note is kept, ms: the next notifier uses its counts.
const keepWell = 60_000

// note is the stored record of a job with problems.
type note struct {
	Told    map[Kind]int64   `json:"told,omitempty"`    // by notified kind: when the problem was noticed, ms
	Counts  counts           `json:"counts"`            // up to which events were notified
	Last    string           `json:"last,omitempty"`    // the run or tick that was notified last
	Success int64            `json:"ok,omitempty"`      // when a run succeeded last, ms
	From    int64            `json:"from,omitempty"`    // start of the deadline of a job without a known success, ms
	Stalled map[string]int64 `json:"stalled,omitempty"` // runs notified as stalled, and when each stall was noticed, ms
	Well    int64            `json:"well,omitempty"`    // since when nothing is wrong any more, ms
}

func readNote(text string) (n *note, err error) {
	n = &note{}
	err = json.Unmarshal([]byte(text), n)
	return n, err
}

func (n *note) text() string {
	text, _ := json.Marshal(n) // numbers and a text
	return string(text)
}

// notifiedAt returns when a problem of a kind that is not over was notified, 0 for never.
func (n *note) notifiedAt(k Kind) int64 {
	if n == nil {
		return 0
	}
	return n.Told[k]
}

// lastStalled returns when the last stall that is not over was notified, ms; 0 for never.
func (n *note) lastStalled() int64 {
	last := n.notifiedAt(Stalled)
	if last == 0 {
		return 0
	}
	for _, at := range n.Stalled {
		last = max(last, at)
	}
	return last
}

// outcome reports whether a kind that a success ends was notified.
func (n *note) outcome() bool {
	return n.notifiedAt(Failed)+n.notifiedAt(Abandoned)+n.notifiedAt(Missed)+n.notifiedAt(Stalled) > 0
}

// instant is an instant of Redis' clock.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
