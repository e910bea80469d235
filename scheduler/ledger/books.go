package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Violation is one thing that is wrong with a job's books.
type Violation struct {
	Job  string `json:"job"`
	What string `json:"what"`
}

// Verify checks, partition by partition, each read at one instant, that every job's chain closes
// and that nothing stands in the books twice; name restricts it to one job, "" takes all. It
// works on a live ledger.
func (l *Ledger) Verify(ctx context.Context, name string) ([]Violation, error) {
	var wrong []Violation
	for p, k := range l.keys {
		if name != "" && p != l.Partition(name) {
			continue
		}
		names := []string{name}
		if name == "" {
			var err error
			if names, err = l.client.HKeys(ctx, k.jobs).Result(); err != nil {
				return nil, redisconn.Explain("verify", err)
			}
		}
		for len(names) > 0 {
			n := min(len(names), BatchMax)
			found, err := l.verify(ctx, k, names[:n])
			if err != nil {
				return nil, err
			}
			wrong, names = append(wrong, found...), names[n:]
		}
	}
	return wrong, nil
}

func (l *Ledger) verify(ctx context.Context, k keys, names []string) ([]Violation, error) {
	var entries *redis.SliceCmd
	var runs, waiting *redis.MapStringStringCmd
	lists := make([]*redis.StringSliceCmd, len(names))
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		entries, runs, waiting = p.HMGet(ctx, k.jobs, names...), p.HGetAll(ctx, k.runs), p.HGetAll(ctx, k.waiting)
		for i, name := range names {
			lists[i] = p.LRange(ctx, k.history+name, 0, -1)
		}
		return nil
	})
	if err != nil {
		return nil, redisconn.Explain("verify", err)
	}
	var wrong []Violation
	bad := func(job string, err error) { wrong = append(wrong, Violation{job, err.Error()}) }
	open := openRuns(runs.Val(), waiting.Val(), bad)
	for i, name := range names {
		if entries.Val()[i] == nil {
			return nil, fmt.Errorf("verify: %w: %q in namespace %s", ErrUnknownJob, name, l.cfg.Namespace)
		}
		e, err := parseEntry(name, text(entries.Val()[i]))
		if err != nil {
			bad(name, err)
			continue
		}
		var rows []Row
		for _, record := range lists[i].Val() {
			row, err := parseRow(name, record)
			if err != nil {
				bad(name, err)
				continue
			}
			rows = append(rows, row)
		}
		for _, what := range Chain(e, rows, open) {
			wrong = append(wrong, Violation{name, what})
		}
	}
	return wrong, nil
}

// openRuns parses the records of runs in flight, leased ones first, each kind by run id.
func openRuns(runs, waiting map[string]string, bad func(string, error)) []Lease {
	var open []Lease
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		lease, err := parseLease(id, runs[id])
		if err != nil {
			bad("", fmt.Errorf("run %s: %w", id, err))
			continue
		}
		open = append(open, lease)
	}
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		lease, err := parsePending(id, waiting[id])
		if err != nil {
			bad("", fmt.Errorf("pending run %s: %w", id, err))
			continue
		}
		open = append(open, lease)
	}
	return open
}

// Time asks Redis for its clock and for its run_id ("" when the server hides it); both come in
// one round trip, the clock first.
func (l *Ledger) Time(ctx context.Context) (now time.Time, runID string, err error) {
	var clock *redis.TimeCmd
	var info *redis.StringCmd
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		clock, info = p.Time(ctx), p.Info(ctx, "server")
		return nil
	})
	if clock.Err() != nil {
		return time.Time{}, "", redisconn.Explain("read the clock", err)
	}
	return clock.Val(), runIDOf(info.Val()), nil
}

func runIDOf(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id
		}
	}
	return ""
}
