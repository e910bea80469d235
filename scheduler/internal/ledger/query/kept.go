package query

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Kept reads the output and the payload that are kept with a run's row: the last bytes of the
// output, and the payload of a run by hand. Of a run that goes on there is only the last Tail.
func Kept(ctx context.Context, l *ledger.Ledger, job, run string) (output, payload []byte, err error) {
	got, err := l.Client.HMGet(ctx, l.Keys[l.Partition(job)].Kept, run, "p:"+run).Result()
	if err != nil {
		return nil, nil, l.Explain(ctx, "read run "+run, err)
	}
	if len(got) != 2 {
		return nil, nil, errors.New("read run " + run + ": the answer has not two parts")
	}
	return []byte(ledger.Text(got[0])), []byte(ledger.Text(got[1])), nil
}

// Progress reads the progress of runs in flight, and what runs wait for before they start, by their
// ids. Runs with neither are left out.
func Progress(ctx context.Context, l *ledger.Ledger, runs []ledger.Run) (map[string]ledger.Progress, map[string]ledger.Wait, error) {
	byPart := l.ByPartition(len(runs), func(i int) string { return runs[i].Job })
	got := make([]*redis.SliceCmd, len(byPart))
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for part, places := range byPart {
			fields := make([]string, len(places))
			for k, i := range places {
				fields[k] = ledger.ProgressField + runs[i].ID
			}
			if len(fields) > 0 {
				got[part] = p.HMGet(ctx, l.Keys[part].Kept, fields...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, redisconn.Classify("read how far runs are", err)
	}
	all, waits := make(map[string]ledger.Progress), make(map[string]ledger.Wait)
	for part, places := range byPart {
		for k, i := range places {
			value := got[part].Val()[k]
			if value == nil {
				continue
			}
			var p ledger.Progress
			var w ledger.Wait
			if p.ReadProgress(ledger.Text(value)) == nil {
				all[runs[i].ID] = p
			} else if w.ReadWait(ledger.Text(value)) == nil && w.Note != "" {
				waits[runs[i].ID] = w
			}
		}
	}
	return all, waits, nil
}

// Cancels reads the cancel flags of some partitions, or of all without an argument. Nodes that
// claim nothing more read these too. With an error of some masters, the other masters' flags are
// returned.
func Cancels(ctx context.Context, l *ledger.Ledger, parts ...int) ([]ledger.Cancel, error) {
	if len(parts) == 0 {
		parts = l.All()
	}
	read := make([]*redis.MapStringStringCmd, len(l.Keys))
	l.EachMaster(ctx, parts, func(parts []int) {
		_, _ = l.Client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error, read below
			for _, part := range parts {
				read[part] = p.HGetAll(ctx, l.Keys[part].Cancels)
			}
			return nil
		})
	})
	var all []ledger.Cancel
	var failed error
	for _, part := range parts {
		all, failed = append(all, cancelsOf(read[part].Val())...), cmp.Or(failed, read[part].Err())
	}
	return all, l.Explain(ctx, "look for cancelled runs", failed)
}

// cancelsOf reads cancel flags, ordered by run. Unreadable flags are left out.
func cancelsOf(flags map[string]string) []ledger.Cancel {
	var all []ledger.Cancel
	for _, run := range slices.Sorted(maps.Keys(flags)) {
		c := ledger.Cancel{Run: run}
		if c.ReadCancel(flags[run]) == nil {
			all = append(all, c)
		}
	}
	return all
}

// commaList are the names in a list that commas part.
func commaList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// pairs are names and values that follow each other.
func pairs(list []string) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}
