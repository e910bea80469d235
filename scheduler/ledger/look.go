package ledger

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// lookMax is what one look reads of each kind per partition.
const lookMax = 64

// Late is a job whose cursor is overdue.
type Late struct {
	Job    string
	Cursor int64 // ms
}

// Finding is what a look at the ledger found.
type Finding struct {
	Late    []Late  // overdue by more than the grace
	Lapsed  []Lease // until has passed
	Pending []Lease // may start
	Foreign int     // records that this version does not understand
}

// Gaze walks the ledger for a sweep: each look goes on in every partition where the one before
// stopped, so that jobs which stay overdue (nobody here holds them) do not hide others behind
// them. It is not safe for concurrent use.
type Gaze struct {
	l      *Ledger
	offset []gazeOffset
}

type gazeOffset struct{ late, lapsed, pending int64 }

// NewGaze starts at the beginning of every partition.
func (l *Ledger) NewGaze() *Gaze {
	return &Gaze{l: l, offset: make([]gazeOffset, len(l.keys))}
}

type glance struct {
	due             *redis.ZSliceCmd
	lapsed, pending *redis.StringSliceCmd
}

// Look reads, in one round trip and a second one only when there is something, what is overdue
// by Redis' time now (ms) less grace (ms). It writes nothing and runs no script.
func (g *Gaze) Look(ctx context.Context, now, grace int64) (Finding, error) {
	looks := make([]glance, len(g.l.keys))
	_, err := g.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range g.l.keys {
			at := g.offset[i]
			looks[i].due = p.ZRangeByScoreWithScores(ctx, k.due, upTo(now-grace, at.late))
			looks[i].lapsed = p.ZRangeByScore(ctx, k.leases, upTo(now-1, at.lapsed))
			looks[i].pending = p.ZRangeByScore(ctx, k.pending, upTo(now, at.pending))
		}
		return nil
	})
	if err != nil {
		return Finding{}, redisconn.Explain("sweep", err)
	}
	var f Finding
	for i := range looks {
		for _, z := range looks[i].due.Val() {
			job, _ := z.Member.(string)
			f.Late = append(f.Late, Late{Job: job, Cursor: int64(z.Score)})
		}
		g.offset[i] = gazeOffset{
			late:    further(g.offset[i].late, len(looks[i].due.Val())),
			lapsed:  further(g.offset[i].lapsed, len(looks[i].lapsed.Val())),
			pending: further(g.offset[i].pending, len(looks[i].pending.Val())),
		}
	}
	return f, g.records(ctx, looks, &f)
}

func upTo(most, offset int64) *redis.ZRangeBy {
	return &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(most, 10), Offset: offset, Count: lookMax}
}

// further goes on behind a full page, and starts anew after one that was not.
func further(offset int64, found int) int64 {
	if found < lookMax {
		return 0
	}
	return offset + int64(found)
}

// records reads the records of the lapsed and pending runs that were found.
func (g *Gaze) records(ctx context.Context, looks []glance, f *Finding) error {
	type read struct {
		ids   []string
		got   *redis.SliceCmd
		parse func(run, record string) (Lease, error)
		into  *[]Lease
	}
	var reads []read
	_, err := g.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range g.l.keys {
			if ids := looks[i].lapsed.Val(); len(ids) > 0 {
				reads = append(reads, read{ids, p.HMGet(ctx, k.runs, ids...), parseLease, &f.Lapsed})
			}
			if ids := looks[i].pending.Val(); len(ids) > 0 {
				reads = append(reads, read{ids, p.HMGet(ctx, k.waiting, ids...), parsePending, &f.Pending})
			}
		}
		return nil
	})
	if err != nil {
		return redisconn.Explain("sweep", err)
	}
	for _, r := range reads {
		for i, record := range r.got.Val() {
			if record == nil {
				continue // ended between the two reads
			}
			lease, err := r.parse(r.ids[i], text(record))
			if errors.Is(err, ErrForeign) {
				f.Foreign++
				continue
			}
			*r.into = append(*r.into, lease)
		}
	}
	return nil
}
