package query

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// InFlight reads the runs in flight, leased and pending ones, in the partitions of the named jobs.
// Records that cannot be read are left out; Verify names them.
func InFlight(ctx context.Context, l *ledger.Ledger, names ...string) ([]ledger.Run, error) {
	return InFlightIn(ctx, l, l.PartitionsOf(names))
}

// InFlightIn is InFlight for some partitions.
func InFlightIn(ctx context.Context, l *ledger.Ledger, parts []int) ([]ledger.Run, error) {
	runs := make([]*redis.MapStringStringCmd, len(parts))
	waiting := make([]*redis.MapStringStringCmd, len(parts))
	if len(parts) == 0 {
		return nil, nil
	}
	// Pending runs first: a run that is granted between the two reads is then in both, not in none.
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, part := range parts {
			waiting[i] = p.HGetAll(ctx, l.Keys[part].Waiting)
			runs[i] = p.HGetAll(ctx, l.Keys[part].Runs)
		}
		return nil
	})
	if err != nil {
		return nil, l.Explain(ctx, "list runs", err)
	}
	var open []ledger.Run
	for i := range parts {
		for id := range runs[i].Val() {
			delete(waiting[i].Val(), id)
		}
		open = append(open, OpenRuns(runs[i].Val(), waiting[i].Val(), func(error) {})...)
	}
	slices.SortFunc(open, func(a, b ledger.Run) int { return strings.Compare(a.ID, b.ID) })
	return open, nil
}

// FindInFlight reads runs and open ticks by their ids, in the partitions of the named jobs. Ids
// that are neither in flight nor pending, and records that cannot be read, are left out.
func FindInFlight(ctx context.Context, l *ledger.Ledger, names []string, runs ...string) ([]ledger.Run, error) {
	parts := l.PartitionsOf(names)
	if len(parts) == 0 || len(runs) == 0 {
		return nil, nil
	}
	granted, waiting := make([]*redis.SliceCmd, len(parts)), make([]*redis.SliceCmd, len(parts))
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, part := range parts { // pending ones first, as in InFlightIn
			waiting[i] = p.HMGet(ctx, l.Keys[part].Waiting, runs...)
			granted[i] = p.HMGet(ctx, l.Keys[part].Runs, runs...)
		}
		return nil
	})
	if err != nil {
		return nil, l.Explain(ctx, "look for a run", err)
	}
	going, to := make(map[string]string), make(map[string]string)
	for i := range parts {
		for k, id := range runs {
			if record := granted[i].Val()[k]; record != nil {
				going[id] = ledger.Text(record)
			} else if record := waiting[i].Val()[k]; record != nil {
				to[id] = ledger.Text(record)
			}
		}
	}
	return OpenRuns(going, to, func(error) {}), nil
}

// One round trip of EachHistory reads the histories of historyJobs jobs, and of fewer, but one,
// where they have very many rows.
const (
	historyJobs = 128
	historyRows = 32_768
)

// JobRows are rows of one job's history, oldest first.
type JobRows struct {
	Job           string
	Rows          []ledger.Row
	UnknownFormat int   // rows that this version cannot read; they are not among Rows
	Err           error // why this history cannot be read, though Redis answered; other histories can
}

// EachHistory hands the rows of each of some jobs to f, in the order of the names, until f returns
// false. It reads some jobs at a time, and keeps none. Rows that do not hold a text, as a run's id,
// are left unread; "" is all rows.
func EachHistory(ctx context.Context, l *ledger.Ledger, names []string, holding string, f func(JobRows) bool) error {
	return eachHistory(ctx, l, names, holding, func(string) int64 { return 0 }, f)
}

// EachTail is EachHistory for the newest rows of each job, at most so many.
func EachTail(ctx context.Context, l *ledger.Ledger, names []string, most int64, f func(JobRows) bool) error {
	return eachHistory(ctx, l, names, "", func(string) int64 { return -most }, f)
}

// EachNewest is EachTail for the recently written rows, and the row before them. A job that may
// have got more rows meanwhile is read again and deeper: until the oldest row read had ended, by
// the clock of any node, when the first recent row was written.
func EachNewest(ctx context.Context, l *ledger.Ledger, lately Recent, f func(JobRows) bool) error {
	most, ended := maps.Clone(lately.Rows), lately.Since-l.Config.MaxSkew.Milliseconds()
	for names := slices.Sorted(maps.Keys(most)); len(names) > 0; {
		var deeper []string
		err := eachHistory(ctx, l, names, "", func(job string) int64 { return -int64(most[job]) - 1 }, func(h JobRows) bool {
			if full := len(h.Rows)+h.UnknownFormat > most[h.Job]; full && (len(h.Rows) == 0 || h.Rows[0].At >= ended) {
				deeper, most[h.Job] = append(deeper, h.Job), 4*most[h.Job]
				return true
			}
			return f(h)
		})
		if err != nil {
			return err
		}
		names = deeper
	}
	return nil
}

// eachHistory reads the rows of a job from the index first on, which counts from the end of a
// history when it is negative.
func eachHistory(ctx context.Context, l *ledger.Ledger, names []string, holding string, first func(job string) int64, f func(JobRows) bool) error {
	for at := min(historyJobs, len(names)); len(names) > 0; at = min(at, len(names)) {
		lists, err := ledger.Queue(ctx, l, names[:at], func(p redis.Pipeliner, name string) *redis.StringSliceCmd {
			return p.LRange(ctx, l.Keys[l.Partition(name)].History+name, first(name), -1)
		})
		if err != nil && !ledger.IsReply(err) {
			return l.Explain(ctx, "read history", err)
		}
		most := 1
		for i, list := range lists {
			err := l.Explain(ctx, "read history", list.Err())
			if err != nil && (!ledger.IsReply(err) || errors.Is(err, locking.ErrUnreachable)) {
				return err
			}
			h := rowsOf(names[i], list.Val(), holding)
			if h.Err = err; !f(h) {
				return nil
			}
			most = max(most, len(list.Val()))
		}
		names = names[at:]
		at = min(historyJobs, max(1, historyRows/most))
	}
	return nil
}

// rowsOf parses a job's rows that contain a text.
func rowsOf(job string, records []string, holding string) JobRows {
	h := JobRows{Job: job}
	if holding == "" {
		h.Rows = make([]ledger.Row, 0, len(records))
	}
	for _, record := range records {
		if !strings.Contains(record, holding) {
			continue
		}
		if row, err := ledger.ParseRow(job, record); err == nil {
			h.Rows = append(h.Rows, row)
		} else {
			h.UnknownFormat++
		}
	}
	return h
}

// History reads the rows of jobs, each oldest first, keyed by job. Rows that this version does
// not understand are counted, not returned.
func History(ctx context.Context, l *ledger.Ledger, names []string) (rows map[string][]ledger.Row, unknownFormat int, err error) {
	rows = make(map[string][]ledger.Row, len(names))
	var wrong error
	err = EachHistory(ctx, l, names, "", func(h JobRows) bool {
		if len(h.Rows) > 0 {
			rows[h.Job] = h.Rows
		}
		unknownFormat += h.UnknownFormat
		wrong = h.Err
		return wrong == nil
	})
	if err = cmp.Or(err, wrong); err != nil {
		return nil, 0, err
	}
	return rows, unknownFormat, nil
}
