package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Renew keeps leases alive, for a locking.Keeper: a renewal's Name is the job, its Owner the run
// id. There is one script call for each partition and BatchMax runs, in one round trip to each
// master. Renew returns an error without answers when no call was answered, and ErrServer with the
// answers when some masters are of another epoch than At's.
func (l *Ledger) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	return l.RenewAt(ctx, batch, func(int) string { return l.known }, func(string) string { return "" })
}

// RenewAt is Renew with a known server for each partition. It also stores runs' progress: the text
// of a Progress, by the run's id; "" for a run without any.
func (l *Ledger) RenewAt(ctx context.Context, batch []locking.Renewal, known func(part int) string,
	progress func(run string) string) ([]locking.RenewAnswer, error) {
	byPart := l.byPartition(len(batch), func(i int) string { return batch[i].Name })
	calls := make(map[int][]*renewal)
	var parts []int
	for p, places := range byPart {
		for part := range slices.Chunk(places, BatchMax) {
			calls[p] = append(calls[p], &renewal{tag: l.keys[p].tag, server: known(p), places: part})
		}
		if len(places) > 0 {
			parts = append(parts, p)
		}
	}
	l.eachMaster(ctx, parts, func(parts []int) { l.renew(ctx, batch, parts, calls, progress) })
	answers := make([]locking.RenewAnswer, len(batch))
	var answered bool
	var refused, failed error
	for _, p := range parts {
		for _, c := range calls[p] {
			err := c.read(answers)
			switch {
			case err == nil:
				answered = true
			case errors.Is(err, ErrServer):
				refused = err
			}
			failed = cmp.Or(failed, err)
		}
	}
	if !answered {
		return nil, cmp.Or(refused, failed)
	}
	return answers, refused
}

// renew sends the calls of some partitions.
func (l *Ledger) renew(ctx context.Context, batch []locking.Renewal, parts []int, calls map[int][]*renewal, progress func(run string) string) {
	pipe, head := l.client.Pipeline(), renewArgs{now: l.believed(ctx), skew: l.cfg.MaxSkew}
	for _, p := range parts {
		for _, c := range calls[p] {
			c.queue(ctx, pipe, renewScript.Queue, head, batch, progress)
		}
	}
	_, _ = pipe.Exec(ctx) // each call has its own error, read later
	pipe = l.client.Pipeline()
	for _, p := range parts {
		for _, c := range calls[p] {
			if redisconn.UnknownScript(c.cmd.Err()) {
				c.queue(ctx, pipe, renewScript.QueueSource, head, batch, progress)
			}
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // as above
	}
}

// renewal is one script call: the places in the batch of runs that live in one partition.
type renewal struct {
	tag    string // of the partition
	server string // that it may run on
	places []int
	cmd    *redis.Cmd
}

type queueFunc func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd

func (r *renewal) queue(ctx context.Context, pipe redis.Pipeliner, add queueFunc, head renewArgs, batch []locking.Renewal,
	progress func(run string) string) {
	head.server = r.server
	args := head.appendTo(make([]string, 0, renewArgsSize+renewItemSize*len(r.places)))
	var token, ttl spelt
	for _, i := range r.places {
		item := renewItem{run: batch[i].Owner, ttl: ttl.of(batch[i].TTL.Milliseconds()), progress: progress(batch[i].Owner)}
		if batch[i].Token != 0 {
			item.token = token.of(batch[i].Token)
		}
		args = item.appendTo(args)
	}
	r.cmd = add(ctx, pipe, renewScript.in(r.tag, ""), appendPlaces(make([]any, 0, len(args)), args)...)
}

// read fills in the answers. A run without an answer, or with an unreadable record, stays Unknown
// and is renewed again until its deadline.
func (r *renewal) read(answers []locking.RenewAnswer) error {
	out, err := wordsOf("renew", len(r.places), r.cmd)
	if err != nil {
		return err
	}
	for j, i := range r.places {
		if out[j] == Renewed {
			answers[i] = locking.Renewed
		} else if out[j] == Gone {
			answers[i] = locking.Gone
		}
	}
	return nil
}

var _ locking.Renewer = (*Ledger)(nil)

// byPartition groups the places 0..n-1 by the partition of their job: one group for each
// partition, in order, empty where it has none of the jobs.
func (l *Ledger) byPartition(n int, job func(int) string) [][]int {
	groups := make([][]int, len(l.keys))
	for i := range n {
		p := l.Partition(job(i))
		groups[p] = append(groups[p], i)
	}
	return groups
}

// Reap settles lapsed leases, as Scan found them, as abandoned; all of one partition, at most
// BatchMax. The caller has seen the clock of this server run steadily for each lease's ttl. Reap
// returns Reaped, Alive, Gone or StatusUnknownFormat for each, or ErrClock.
func (l *Ledger) Reap(ctx context.Context, now int64, server string, seen []Run) ([]Status, error) {
	head := reapArgs{now: now, skew: l.cfg.MaxSkew, keep: l.cfg.Keep, keepFor: l.cfg.KeepFor, server: server}
	args := head.appendTo(make([]string, 0, reapArgsSize+reapItemSize*len(seen)))
	for _, s := range seen {
		item := reapItem{job: s.Job, id: s.ID, beat: s.Beat, fresh: NextAttemptID(s.ID)}
		args = item.appendTo(args)
	}
	ks := reapScript.each(l.tag(seen[0].Job), len(seen), func(i int) string { return seen[i].Job })
	reply, err := evaluate(ctx, l.client, reapScript, ks, args).Slice()
	if err == nil {
		if refused := refused(reply, now); refused != nil {
			return nil, refused
		}
	}
	return words("reap", len(seen))(reply, err)
}

// Return names a granted run that could not be started.
type Return struct {
	Job, Run string
	Token    locking.Token // of the grant; 0 for whichever it was
}

// Unclaim hands back runs whose function was never called, all of one partition, at most BatchMax.
// Each is pending again under its NextAttemptID. Unclaim returns Returned, Lost or
// StatusUnknownFormat for each and may be repeated. It returns ErrServer in another epoch than
// At's.
func (l *Ledger) Unclaim(ctx context.Context, batch []Return) ([]Status, error) {
	head := unclaimArgs{now: l.believed(ctx), skew: l.cfg.MaxSkew, keep: l.cfg.Keep, keepFor: l.cfg.KeepFor, server: l.known}
	args := head.appendTo(make([]string, 0, unclaimArgsSize+unclaimItemSize*len(batch)))
	for _, r := range batch {
		item := unclaimItem{job: r.Job, id: r.Run, token: r.Token, fresh: NextAttemptID(r.Run)}
		args = item.appendTo(args)
	}
	ks := unclaimScript.each(l.tag(batch[0].Job), len(batch), func(i int) string { return batch[i].Job })
	return words("unclaim", len(batch))(evaluate(ctx, l.client, unclaimScript, ks, args).Slice())
}
