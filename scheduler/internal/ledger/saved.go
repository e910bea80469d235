package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// The prefixes of the fields of a partition's kept that hold a run's checkpoint and progress; the
// run's id follows.
const (
	savedField    = "s:"
	progressField = "g:"
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
func (l *Ledger) Save(ctx context.Context, server string, run Run, before string, data []byte) error {
	word, err := saveScript.call(ctx, l.client, l.tag(run.Job), "", saveArgs{server, run.ID, run.Token, before}, data).Text()
	switch {
	case err == nil && word == "gone":
		err = locking.ErrLeaseLost
	case err == nil && word == "server":
		err = ErrServer
	}
	return redisconn.Classify("save a checkpoint", err)
}

// Saved reads the newest checkpoint of earlier attempts of a run's tick and shard, and its run; ""
// and nil for none. Attempts before a success do not count. ErrUnknownFormat comes with the
// checkpoint found when Redis has records there that cannot be read, or refuses: repeating the call
// is of no use.
func (l *Ledger) Saved(ctx context.Context, run Run) (by string, data []byte, err error) {
	history, unknownFormat, err := l.History(ctx, []string{run.Job})
	if err != nil {
		return "", nil, savedFault(err)
	}
	if unknownFormat > 0 {
		err = fmt.Errorf("read a checkpoint: %w: %d rows of the history", ErrUnknownFormat, unknownFormat)
	}
	before := attemptsBefore(history[run.Job], run)
	if len(before) == 0 {
		return "", nil, err
	}
	fields := make([]string, len(before))
	for i, r := range before {
		fields[i] = savedField + r.Run
	}
	got, failed := l.client.HMGet(ctx, l.keys[l.Partition(run.Job)].kept, fields...).Result()
	if failed != nil {
		return "", nil, savedFault(failed)
	}
	for i, value := range got {
		if value != nil {
			return before[i].Run, []byte(text(value)), err
		}
	}
	return "", nil, err
}

// savedFault is why the attempts' checkpoints cannot be read.
func savedFault(err error) error {
	err = redisconn.Classify("read a checkpoint", err)
	if isReply(err) && !errors.Is(err, locking.ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrUnknownFormat, err)
	}
	return err
}

// attemptsBefore are the rows of earlier attempts of a run's tick and shard, the newest first, up
// to the last success.
func attemptsBefore(rows []Row, run Run) (before []Row) {
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		return r.Ranged || r.IsTick || r.Tick != run.Tick || r.Shard != run.Shard || r.Shards != run.Shards || r.Attempt >= run.Attempt
	})
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Attempt, a.Attempt) })
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
func repeats(id, request string, of Row) bool {
	if request == "" || of.Request == "" {
		return false
	}
	later := slices.Concat(laterAttemptIDs(of.Run), laterAttemptIDs(of.Request))
	return slices.Contains(later, id) || slices.Contains(later, request)
}

// Progress is a run's progress, as its function reported it.
type Progress struct {
	At          int64 // of the report, ms
	Done, Total int64 // steps; a total of 0 is not known
	Since, From int64 // the time of the first report, ms, and how many steps were done then
	Note        string
}

// Text is the progress as it is stored.
func (r Progress) Text() string { return r.text() }

// Wait is the reason why a granted run waits before it starts.
type Wait struct {
	At      int64  // since when, ms; of a run that waits no more, when that ended
	Refused bool   // the store of the lock refuses or does not answer; else another holder has the lock
	Note    string // in words; "": the run waits no more
}

// Text is the wait as it is stored. A bar would end the note of a row.
func (r Wait) Text() string {
	r.Note = strings.ReplaceAll(r.Note, "|", "/")
	return r.text()
}

// Progress reads the progress of runs in flight, and what runs wait for before they start, by their
// ids. Runs with neither are left out.
func (l *Ledger) Progress(ctx context.Context, runs []Run) (map[string]Progress, map[string]Wait, error) {
	byPart := l.byPartition(len(runs), func(i int) string { return runs[i].Job })
	got := make([]*redis.SliceCmd, len(byPart))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for part, places := range byPart {
			fields := make([]string, len(places))
			for k, i := range places {
				fields[k] = progressField + runs[i].ID
			}
			if len(fields) > 0 {
				got[part] = p.HMGet(ctx, l.keys[part].kept, fields...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, redisconn.Classify("read how far runs are", err)
	}
	all, waits := make(map[string]Progress), make(map[string]Wait)
	for part, places := range byPart {
		for k, i := range places {
			value := got[part].Val()[k]
			if value == nil {
				continue
			}
			var p Progress
			var w Wait
			if p.readProgress(text(value)) == nil {
				all[runs[i].ID] = p
			} else if w.readWait(text(value)) == nil && w.Note != "" {
				waits[runs[i].ID] = w
			}
		}
	}
	return all, waits, nil
}
