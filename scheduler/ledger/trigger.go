package ledger

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/locking/redisconn"
)

// PayloadMax is the largest payload of a run by hand, in bytes.
const PayloadMax = 64 << 10

// Trigger puts one run of a job into pending, under a run id that the caller made; a repeated
// request is the same run, as long as the job's history still has its row. The schedule stays
// where it is. It returns ErrUnknownJob, or ErrRefused for a payload over PayloadMax and when the
// partition holds too many pending runs.
func (l *Ledger) Trigger(ctx context.Context, job, run string, payload []byte) error {
	if len(payload) > PayloadMax {
		return fmt.Errorf("%w: payload of %d bytes; at most %d, so store it elsewhere and pass its address", ErrRefused, len(payload), PayloadMax)
	}
	k := l.keys[l.Partition(job)]
	ks := []string{k.jobs, k.runs, k.pending, k.waiting, k.history + job}
	word, err := triggerScript.Run(ctx, l.client, ks, job, run, pendingMax, payload).Text()
	if err != nil {
		return redisconn.Explain("run "+job, err)
	}
	switch word {
	case "queued":
		return nil
	case "unknown":
		return fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, job, l.cfg.Namespace)
	case "full":
		return fmt.Errorf("%w: %d runs wait already beside %s; is a node running that holds it?", ErrRefused, pendingMax, job)
	default:
		return fmt.Errorf("run %s: entry: %w", job, ErrForeign)
	}
}
