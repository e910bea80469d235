package ledger

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// recentMost is RECENT_MOST of lib/history: a list of fewer lines was never cut.
const recentMost = 1000

// never is behind all times, ms, and leaves room to add to it.
const never = int64(math.MaxInt64 / 2)

// Recent is of which jobs rows were written lately.
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

// Recent reads the newest lines of some partitions, at most so many of each.
func (l *Ledger) Recent(ctx context.Context, parts []int, lines int64) (Recent, error) {
	found := make([]*redis.StringSliceCmd, len(parts))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, part := range parts {
			found[i] = p.LRange(ctx, l.keys[part].recent, -lines, -1)
		}
		return nil
	})
	r := Recent{Rows: make(map[string]int)}
	if err != nil {
		return r, l.explain(ctx, "list runs", err)
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
		r.Ended = r.Since + l.cfg.MaxSkew.Milliseconds()
	}
	return r, nil
}

// movedRows is a line that stands for rows that a move or a backup has brought: all of them ended
// before the lines behind it were written.
const movedRows = "0|"
