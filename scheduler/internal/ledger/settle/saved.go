package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

var (
	tailScript = ledger.Ship("settle/tail", tailArgs{})
	saveScript = ledger.Ship("settle/save", saveArgs{})
)

type saveArgs struct {
	Server string `json:"server"` // id of the caller's epoch
	Run    string `json:"run"`
	Token  int64  `json:"token,string"`
	Before string `json:"before,omitempty"` // the run whose checkpoint is replaced
}

// Save keeps the checkpoint of a run, in place of the checkpoint of the run before, an attempt of
// the same tick; "" for none. It returns locking.ErrLeaseLost when the run has ended or was granted
// to another node, and ErrServer when the master is another one; then nothing was done.
func Save(ctx context.Context, l *ledger.Ledger, server string, run ledger.Run, before string, data []byte) error {
	word, err := saveScript.Call(ctx, l.Client, l.Tag(run.Job), "", saveArgs{server, run.ID, run.Token, before}, data).Text()
	switch {
	case err == nil && word == "gone":
		err = locking.ErrLeaseLost
	case err == nil && word == "server":
		err = ledger.ErrServer
	}
	return redisconn.Classify("save a checkpoint", err)
}

// Saved reads the newest checkpoint of earlier attempts of a run's tick and shard, and its run; ""
// and nil for none. Attempts before a success do not count. ErrUnknownFormat comes with the
// checkpoint found when Redis has records there that cannot be read, or refuses: repeating the call
// is of no use.
func Saved(ctx context.Context, l *ledger.Ledger, run ledger.Run) (by string, data []byte, err error) {
	history, unknownFormat, err := query.History(ctx, l, []string{run.Job})
	if err != nil {
		return "", nil, savedFault(err)
	}
	if unknownFormat > 0 {
		err = fmt.Errorf("read a checkpoint: %w: %d rows of the history", ledger.ErrUnknownFormat, unknownFormat)
	}
	before := attemptsBefore(history[run.Job], run)
	if len(before) == 0 {
		return "", nil, err
	}
	fields := make([]string, len(before))
	for i, r := range before {
		fields[i] = ledger.SavedField + r.Run
	}
	got, failed := l.Client.HMGet(ctx, l.Keys[l.Partition(run.Job)].Kept, fields...).Result()
	if failed != nil {
		return "", nil, savedFault(failed)
	}
	for i, value := range got {
		if value != nil {
			return before[i].Run, []byte(ledger.Text(value)), err
		}
	}
	return "", nil, err
}

// savedFault is why the attempts' checkpoints cannot be read.
func savedFault(err error) error {
	err = redisconn.Classify("read a checkpoint", err)
	if ledger.IsReply(err) && !errors.Is(err, locking.ErrUnreachable) {
		return fmt.Errorf("%w: %w", ledger.ErrUnknownFormat, err)
	}
	return err
}

// attemptsBefore are the rows of earlier attempts of a run's tick and shard, the newest first, up
// to the last success.
func attemptsBefore(rows []ledger.Row, run ledger.Run) (before []ledger.Row) {
	rows = slices.DeleteFunc(rows, func(r ledger.Row) bool {
		return r.Ranged || r.IsTick || r.Tick != run.Tick || r.Shard != run.Shard || r.Shards != run.Shards || r.Attempt >= run.Attempt
	})
	slices.SortStableFunc(rows, func(a, b ledger.Row) int { return cmp.Compare(b.Attempt, a.Attempt) })
	id, request := run.ID, run.Request
	for _, r := range rows {
		if r.Request != request && !repeats(id, request, r) {
			continue
		}
		if r.Outcome == jobs.OutcomeSucceeded {
			break
		}
		before = append(before, r)
		id, request = r.Run, r.Request
	}
	return before
}

// repeats reports whether a run is a rerun of a run by hand, or of the tick that such a run is a
// shard of: the rerun's request follows from the other id.
func repeats(id, request string, of ledger.Row) bool {
	if request == "" || of.Request == "" {
		return false
	}
	later := slices.Concat(ledger.LaterAttemptIDs(of.Run), ledger.LaterAttemptIDs(of.Request))
	return slices.Contains(later, id) || slices.Contains(later, request)
}

// Tail is the latest output of a run in flight.
type Tail struct {
	Job, Run string
	Token    locking.Token
	Output   []byte // jobs.MaxOutput bytes at most
}

type tailArgs struct {
	Runs []tailRun `json:"runs"`
}

type tailRun struct {
	ID    string `json:"id"`
	Token int64  `json:"token,string"`
}

// KeepTails stores tails beside their runs, all of one partition; the runs' ends replace them. It
// returns how many tails it stored: only runs in flight get one.
func KeepTails(ctx context.Context, l *ledger.Ledger, part int, tails []Tail) (kept int, err error) {
	var args tailArgs
	outputs := make([]any, len(tails))
	for k, t := range tails {
		args.Runs, outputs[k] = append(args.Runs, tailRun{t.Run, t.Token}), t.Output
	}
	kept, err = tailScript.Call(ctx, l.Client, l.Keys[part].Tag, "", args, outputs...).Int()
	return kept, redisconn.Classify("keep tails", err)
}
