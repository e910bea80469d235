package ledger

import (
	"context"
	"strconv"

	"github.com/escapement/escapement/locking"
)

// Renew keeps leases alive, for a locking.Keeper: a renewal's Name is the job, its Owner the run
// id. It makes one script call for each partition and each BatchMax runs in it, one after another.
func (l *Ledger) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers := make([]locking.RenewAnswer, len(batch))
	for p, places := range l.byPartition(len(batch), func(i int) string { return batch[i].Name }) {
		k := l.keys[p]
		for len(places) > 0 {
			n := min(len(places), BatchMax)
			args := make([]any, 0, 2*n)
			for _, i := range places[:n] {
				args = append(args, batch[i].Owner, ms(batch[i].TTL.Milliseconds()))
			}
			out, err := words("renew", n)(renewScript.Run(ctx, l.client, []string{k.runs, k.leases}, args...).Slice())
			if err != nil {
				return nil, err
			}
			for j, i := range places[:n] {
				answers[i] = locking.Gone
				if out[j] == "renewed" {
					answers[i] = locking.Renewed
				}
			}
			places = places[n:]
		}
	}
	return answers, nil
}

var _ locking.Renewer = (*Ledger)(nil)

// byPartition groups the places 0..n-1 by the partition of their job.
func (l *Ledger) byPartition(n int, job func(int) string) map[int][]int {
	groups := make(map[int][]int)
	for i := range n {
		p := l.Partition(job(i))
		groups[p] = append(groups[p], i)
	}
	return groups
}

// Reap settles, as abandoned, lapsed leases as they were seen by Look; all of one partition, at
// most BatchMax. The caller vouches that it has seen Redis' clock run steadily for each lease's
// ttl. It returns Reaped, Alive, Gone or Strange for each, or ErrClock.
func (l *Ledger) Reap(ctx context.Context, now int64, seen []Lease) ([]Word, error) {
	k := l.keys[l.Partition(seen[0].Job)]
	ks := append(make([]string, 0, 3+len(seen)), k.jobs, k.runs, k.leases)
	keep, keepFor := l.keepArgs()
	args := []any{ms(now), ms(l.cfg.MaxSkew.Milliseconds()), keep, keepFor}
	for _, s := range seen {
		ks = append(ks, k.history+s.Job)
		args = append(args, s.Job, s.Run, strconv.FormatInt(s.Beat, 10))
	}
	reply, err := reapScript.Run(ctx, l.client, ks, args...).Slice()
	if err == nil {
		if refused := refusedByClock(reply, now); refused != nil {
			return nil, refused
		}
	}
	return words("reap", len(seen))(reply, err)
}

// Return names a granted run that could not be started, and the fresh id under which it becomes
// pending again.
type Return struct {
	Job, Run, Fresh string
}

// Unclaim hands runs back whose function was never called; all of one partition, at most
// BatchMax. It returns Returned, Lost or Strange for each and may be repeated.
func (l *Ledger) Unclaim(ctx context.Context, batch []Return) ([]Word, error) {
	k := l.keys[l.Partition(batch[0].Job)]
	args := make([]any, 0, 3*len(batch))
	for _, r := range batch {
		args = append(args, r.Job, r.Run, r.Fresh)
	}
	ks := []string{k.jobs, k.runs, k.leases, k.pending, k.waiting}
	return words("unclaim", len(batch))(unclaimScript.Run(ctx, l.client, ks, args...).Slice())
}
