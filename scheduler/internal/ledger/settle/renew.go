package settle

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Renew keeps leases alive, for a locking.Keeper: a renewal's Name is the job, its Owner the run
// id. There is one script call for each partition and BatchMax runs, in one round trip to each
// master. Renew returns an error without answers when no call was answered, and ErrServer with the
// answers when some masters are of another epoch than At's.
func Renew(ctx context.Context, l *ledger.Ledger, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	return RenewAt(ctx, l, batch, func(int) string { return l.Known }, func(string) string { return "" })
}

// RenewAt is Renew with a known server for each partition. It also stores runs' progress: the text
// of a Progress, by the run's id; "" for a run without any.
func RenewAt(ctx context.Context, l *ledger.Ledger, batch []locking.Renewal, known func(part int) string,
	progress func(run string) string) ([]locking.RenewAnswer, error) {
	byPart := l.ByPartition(len(batch), func(i int) string { return batch[i].Name })
	calls := make(map[int][]*renewal)
	var parts []int
	for p, places := range byPart {
		for part := range slices.Chunk(places, ledger.BatchMax) {
			calls[p] = append(calls[p], &renewal{tag: l.Keys[p].Tag, server: known(p), places: part})
		}
		if len(places) > 0 {
			parts = append(parts, p)
		}
	}
	l.EachMaster(ctx, parts, func(parts []int) { renew(ctx, l, batch, parts, calls, progress) })
	answers := make([]locking.RenewAnswer, len(batch))
	var answered bool
	var refused, failed error
	for _, p := range parts {
		for _, c := range calls[p] {
			err := c.read(answers)
			switch {
			case err == nil:
				answered = true
			case errors.Is(err, ledger.ErrServer):
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
func renew(ctx context.Context, l *ledger.Ledger, batch []locking.Renewal, parts []int, calls map[int][]*renewal, progress func(run string) string) {
	pipe, head := l.Client.Pipeline(), renewArgs{now: l.Believed(ctx), skew: l.Config.MaxSkew}
	for _, p := range parts {
		for _, c := range calls[p] {
			c.queue(ctx, pipe, renewScript.Queue, head, batch, progress)
		}
	}
	_, _ = pipe.Exec(ctx) // each call has its own error, read later
	pipe = l.Client.Pipeline()
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

func (r *renewal) queue(ctx context.Context, pipe redis.Pipeliner, add ledger.QueueFunc, head renewArgs, batch []locking.Renewal,
	progress func(run string) string) {
	head.server = r.server
	args := head.appendTo(make([]string, 0, renewArgsSize+renewItemSize*len(r.places)))
	var token, ttl ledger.Spelt
	for _, i := range r.places {
		item := renewItem{run: batch[i].Owner, ttl: ttl.Of(batch[i].TTL.Milliseconds()), progress: progress(batch[i].Owner)}
		if batch[i].Token != 0 {
			item.token = token.Of(batch[i].Token)
		}
		args = item.appendTo(args)
	}
	r.cmd = add(ctx, pipe, renewScript.In(r.tag, ""), ledger.AppendPlaces(make([]any, 0, len(args)), args)...)
}

// read fills in the answers. A run without an answer, or with an unreadable record, stays Unknown
// and is renewed again until its deadline.
func (r *renewal) read(answers []locking.RenewAnswer) error {
	out, err := ledger.WordsOf("renew", len(r.places), r.cmd)
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

// Reap settles lapsed leases, as Scan found them, as abandoned; all of one partition, at most
// BatchMax. The caller has seen the clock of this server run steadily for each lease's ttl. Reap
// returns Reaped, Alive, Gone or StatusUnknownFormat for each, or ErrClock.
func Reap(ctx context.Context, l *ledger.Ledger, now int64, server string, seen []ledger.Run) ([]ledger.Status, error) {
	head := reapArgs{now: now, skew: l.Config.MaxSkew, keep: l.Config.Keep, keepFor: l.Config.KeepFor, server: server}
	args := head.appendTo(make([]string, 0, reapArgsSize+reapItemSize*len(seen)))
	for _, s := range seen {
		item := reapItem{job: s.Job, id: s.ID, beat: s.Beat, fresh: ledger.NextAttemptID(s.ID)}
		args = item.appendTo(args)
	}
	ks := reapScript.Each(l.Tag(seen[0].Job), len(seen), func(i int) string { return seen[i].Job })
	reply, err := ledger.Evaluate(ctx, l.Client, reapScript, ks, args).Slice()
	if err == nil {
		if refused := ledger.Refused(reply, now); refused != nil {
			return nil, refused
		}
	}
	return ledger.Words("reap", len(seen))(reply, err)
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
func Unclaim(ctx context.Context, l *ledger.Ledger, batch []Return) ([]ledger.Status, error) {
	head := unclaimArgs{now: l.Believed(ctx), skew: l.Config.MaxSkew, keep: l.Config.Keep, keepFor: l.Config.KeepFor, server: l.Known}
	args := head.appendTo(make([]string, 0, unclaimArgsSize+unclaimItemSize*len(batch)))
	for _, r := range batch {
		item := unclaimItem{job: r.Job, id: r.Run, token: r.Token, fresh: ledger.NextAttemptID(r.Run)}
		args = item.appendTo(args)
	}
	ks := unclaimScript.Each(l.Tag(batch[0].Job), len(batch), func(i int) string { return batch[i].Job })
	return ledger.Words("unclaim", len(batch))(ledger.Evaluate(ctx, l.Client, unclaimScript, ks, args).Slice())
}
