package agenda

import (
	"errors"
	"sync/atomic"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// answerCounts counts the claims of a node by their answers. Only the agenda counts; anybody reads.
type answerCounts struct {
	verdicts              [claim.VerdictUnknownFormat + 1]atomic.Int64
	clock, notSent, error atomic.Int64 // claims without a verdict
}

// count counts the claims of a batch that came back.
func (c *answerCounts) count(b *work.Batch) {
	switch n := int64(len(b.Claims)); {
	case b.Err == nil:
		for _, a := range b.Answers {
			c.verdicts[min(a.Verdict, claim.VerdictUnknownFormat)].Add(1)
		}
	case errors.Is(b.Err, work.ErrNotSent):
		c.notSent.Add(n)
	case errors.Is(b.Err, ledger.ErrClock):
		c.clock.Add(n)
	default:
		c.error.Add(n)
	}
}

// AnswerCounts counts claims by answer: the words of the claim script, "clock" for claims that
// Redis' clock or the node's refused, "not_sent" for claims that were too old to be sent, and
// "error" for the rest.
func (a *Agenda) AnswerCounts() map[string]int64 {
	c := &a.answers
	all := map[string]int64{"clock": c.clock.Load(), "not_sent": c.notSent.Load(), "error": c.error.Load()}
	for v := claim.Granted; v <= claim.VerdictUnknownFormat; v++ {
		all[v.String()] = c.verdicts[v].Load()
	}
	return all
}
