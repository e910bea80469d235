package query

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// recentMost is RECENT_MOST of lib/history: a list of fewer lines was never cut.
const recentMost = 1000

// never is behind all times, ms, and leaves room to add to it.
const never = int64(math.MaxInt64 / 2)

// Recent has the jobs of which rows were written lately.
type Recent struct {
	// Rows is how many rows of each job, at least, were written since Since, ms; by job.
	Rows map[string]int
	// Since is 0 when Rows has all existing rows.
	Since int64
	// Ended is when rows that were written before Since had ended, ms: the clock of the node that
	// wrote one may have been MaxSkew ahead.
	Ended int64
	// More: there are older lines to read.
	More bool
}

// newest reads the newest lines of some partitions.
func newest(ctx context.Context, l *ledger.Ledger, parts []int, lines int64) ([]*redis.StringSliceCmd, error) {
	return ledger.Queue(ctx, l, parts, func(p redis.Pipeliner, part int) *redis.StringSliceCmd {
		return p.LRange(ctx, l.Keys[part].Recent, -lines, -1)
	})
}

// ListRecent reads the newest lines of some partitions, at most so many of each.
func ListRecent(ctx context.Context, l *ledger.Ledger, parts []int, lines int64) (Recent, error) {
	found, err := newest(ctx, l, parts, lines)
	r := Recent{Rows: make(map[string]int)}
	if err != nil {
		return r, l.Explain(ctx, "list runs", err)
	}
	for _, list := range found {
		since, moved := never, false
		for i := len(list.Val()) - 1; i >= 0; i-- {
			text, jobs, _ := strings.Cut(list.Val()[i], "|")
			at, err := strconv.ParseInt(text, 10, 64)
			if moved = err != nil || at == 0; moved {
				break
			}
			since = at
			for job := range strings.SplitSeq(jobs, ",") {
				r.Rows[job]++
			}
		}
		n := len(list.Val())
		switch {
		case moved:
		case int64(n) == lines:
			r.More = true
		case n < recentMost:
			since = 0
		}
		r.Since = max(r.Since, since)
	}
	if r.Since > 0 {
		r.Ended = r.Since + l.Config.MaxSkew.Milliseconds()
	}
	return r, nil
}

// MovedRows is a line that stands for rows that a move or a backup has brought: all of them ended
// before the lines behind it were written.
const MovedRows = "0|"

// Ahead is the next work of a namespace.
type Ahead struct {
	Jobs   []string // the jobs with the earliest cursors, the earliest first
	Paused int      // how many jobs are paused; a pause that has ended by itself counts until the job's next tick
}

// ListAhead reads the names of the jobs that are due first, at most so many, and counts pauses. With an
// UnreachableError, the other partitions' jobs and pauses are returned too.
func ListAhead(ctx context.Context, l *ledger.Ledger, most int64) (Ahead, error) {
	due, pauses := make([]*redis.ZSliceCmd, len(l.Keys)), make([]*redis.IntCmd, len(l.Keys))
	err := l.EachReachable(ctx, l.QueueTimeout(ctx), "list what is due", l.All(), func(ctx context.Context, parts []int) error {
		_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				due[part] = p.ZRangeWithScores(ctx, l.Keys[part].Due, 0, most-1)
				pauses[part] = p.HLen(ctx, l.Keys[part].Pauses)
			}
			return nil
		})
		return err
	})
	var a Ahead
	var all []redis.Z
	for part := range l.Keys {
		if due[part] != nil && pauses[part] != nil {
			all = append(all, due[part].Val()...)
			a.Paused += int(pauses[part].Val())
		}
	}
	slices.SortStableFunc(all, func(x, y redis.Z) int { return cmp.Compare(x.Score, y.Score) })
	for _, z := range all[:min(len(all), int(most))] {
		a.Jobs = append(a.Jobs, ledger.Text(z.Member))
	}
	return a, err
}

// changedLines is how many lines of a partition are read at first to find changed jobs.
const changedLines = 32

// Changed names the jobs of which rows were written since an instant of Redis' clock, ms. whole is
// false when there were so many that some are not known any more: any job may then have changed.
func Changed(ctx context.Context, l *ledger.Ledger, since int64) (jobs map[string]bool, whole bool, err error) {
	jobs = make(map[string]bool)
	parts := l.All()
	for lines := int64(changedLines); len(parts) > 0; lines *= 8 {
		found, err := newest(ctx, l, parts, lines)
		if err != nil {
			return nil, false, l.Explain(ctx, "look for changes", err)
		}
		var deeper []int
		for i, list := range found {
			switch n := int64(len(list.Val())); {
			case changedIn(list.Val(), since, jobs):
			case n == lines:
				deeper = append(deeper, parts[i])
			case n >= recentMost:
				return jobs, false, nil
			}
		}
		parts = deeper
	}
	return jobs, true, nil
}

// changedIn adds the jobs of the lines that were written since an instant, and reports whether
// there is a line before it. Lines without a time stand for rows that a move or a backup has
// brought, which are no news.
func changedIn(lines []string, since int64, jobs map[string]bool) bool {
	for _, line := range slices.Backward(lines) {
		at, names, _ := strings.Cut(line, "|")
		switch ms := ledger.Number(at); {
		case ms == 0:
			continue
		case ms < since:
			return true
		}
		for job := range strings.SplitSeq(names, ",") {
			jobs[job] = true
		}
	}
	return false
}
