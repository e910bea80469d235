package ledger

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A look reads pages of lookMax of each kind per partition, at most lookPages of them.
const (
	lookMax   = 256
	lookPages = 8
)

// Late is a job whose cursor is overdue.
type Late struct {
	Job    string
	Cursor int64 // ms; of an orphan that was put off, when it was to be looked at again
}

// Finding is what a look at the ledger found.
type Finding struct {
	Late    []Late   // overdue by more than the grace
	Lapsed  []Lease  // until has passed
	Pending []Lease  // may start
	Cancels []Cancel // runs that somebody wants ended
	Events  []Event  // for jobs that follow others
	Foreign int      // records that this version does not understand
}

// eventsMax is how many events of a partition one look reads.
const eventsMax = 64

// Gaze walks the ledger for a sweep. A look reads everything that is overdue, up to 2,048 of a
// kind in a partition; where there is more, the next look goes on behind that, so that jobs which
// stay overdue (nobody here holds them) do not hide others for ever. It is not safe for
// concurrent use.
type Gaze struct {
	l      *Ledger
	offset []gazeOffset
}

type gazeOffset struct {
	late, lapsed, pending, outbox int64
	event                         string // the first event of the last page
	long                          bool   // the outbox has more than a page, as far as is known
}

// NewGaze starts at the beginning of every partition.
func (l *Ledger) NewGaze() *Gaze {
	return &Gaze{l: l, offset: make([]gazeOffset, len(l.keys))}
}

// glance is a page of one partition; a kind that was read to its end before has no command.
type glance struct {
	part            int
	due             *redis.ZSliceCmd
	lapsed, pending *redis.StringSliceCmd
	cancels         *redis.MapStringStringCmd // of the first page, as outbox
	outbox, newest  *redis.StringSliceCmd
}

// rows are the rows of the outbox that were read, each once.
func (l glance) rows() []string {
	rows := ids(l.outbox)
	for _, row := range ids(l.newest) {
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	return rows
}

func ids(cmd *redis.StringSliceCmd) []string {
	if cmd == nil {
		return nil
	}
	return cmd.Val()
}

// Look reads what is overdue by Redis' time now (ms) less grace (ms): one round trip for a page of
// every partition, and another one for the records of what was found. It writes nothing and runs
// no script. parts are the partitions to look at, all when there are none. Masters of a Cluster are asked side by
// side: beside an UnheardError, and beside what one of them refuses, stands what the others have.
func (g *Gaze) Look(ctx context.Context, now, grace int64, parts ...int) (Finding, error) {
	if len(parts) == 0 {
		parts = g.l.every()
	}
	var mu sync.Mutex
	var all Finding
	err := g.l.unheard(ctx, nodePatience, "sweep", parts, func(ctx context.Context, parts []int) error {
		f, err := g.look(ctx, now, grace, parts)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			all.add(f)
		}
		return err
	})
	return all, err
}

// add adds what another master has.
func (f *Finding) add(other Finding) {
	f.Late, f.Lapsed, f.Pending = append(f.Late, other.Late...), append(f.Lapsed, other.Lapsed...), append(f.Pending, other.Pending...)
	f.Cancels, f.Events = append(f.Cancels, other.Cancels...), append(f.Events, other.Events...)
	f.Foreign += other.Foreign
}

// look is Look at partitions of one master.
func (g *Gaze) look(ctx context.Context, now, grace int64, of []int) (Finding, error) {
	var f Finding
	parts := slices.Clone(of)
	for page := 0; page < lookPages && len(parts) > 0; page++ {
		looks := make([]glance, len(parts))
		_, err := g.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, part := range parts {
				looks[i] = g.glance(ctx, p, part, page == 0, now, grace)
			}
			return nil
		})
		if err != nil {
			return Finding{}, err
		}
		parts = parts[:0]
		for _, look := range looks {
			if g.note(look, &f) {
				parts = append(parts, look.part)
			}
		}
		if err := g.records(ctx, looks, &f); err != nil {
			return Finding{}, err
		}
	}
	return f, nil
}

func (g *Gaze) glance(ctx context.Context, p redis.Pipeliner, part int, first bool, now, grace int64) glance {
	k, at := g.l.keys[part], g.offset[part]
	look := glance{part: part}
	if first || at.late > 0 {
		look.due = p.ZRangeByScoreWithScores(ctx, k.due, upTo(now-grace, at.late))
	}
	if first || at.lapsed > 0 {
		look.lapsed = p.ZRangeByScore(ctx, k.leases, upTo(now-1, at.lapsed))
	}
	if first || at.pending > 0 {
		look.pending = p.ZRangeByScore(ctx, k.pending, upTo(now, at.pending))
	}
	if first {
		look.cancels, look.outbox = p.HGetAll(ctx, k.cancels), p.ZRange(ctx, k.outbox, at.outbox, at.outbox+eventsMax-1)
		if at.long { // new events do not wait until the walk comes to them
			look.newest = p.ZRange(ctx, k.outbox, -eventsMax, -1)
		}
	}
	return look
}

// note takes up what was read of a partition and says whether there may be more.
func (g *Gaze) note(look glance, f *Finding) bool {
	var late []redis.Z
	if look.due != nil {
		late = look.due.Val()
	}
	for _, z := range late {
		job, _ := z.Member.(string)
		f.Late = append(f.Late, Late{Job: job, Cursor: int64(z.Score)})
	}
	if look.cancels != nil {
		f.Cancels = append(f.Cancels, cancelsOf(look.cancels.Val())...)
	}
	at := &g.offset[look.part]
	at.late, at.lapsed, at.pending = further(at.late, len(late)), further(at.lapsed, len(ids(look.lapsed))), further(at.pending, len(ids(look.pending)))
	if look.outbox != nil {
		at.turn(ids(look.outbox))
	}
	return at.late+at.lapsed+at.pending > 0
}

// turn decides where the next look reads the outbox, one page a look beside the newest: from the start, as long as what is read
// leaves; a page that stays is passed over, so that events which cannot be told yet do not hide others for ever.
func (o *gazeOffset) turn(page []string) {
	first := ""
	o.long = o.outbox > 0 || len(page) == eventsMax
	if len(page) > 0 {
		first = page[0]
	}
	switch stays := first == o.event; {
	case len(page) < eventsMax:
		o.outbox, o.event = 0, ""
	case stays:
		o.outbox, o.event = o.outbox+eventsMax, ""
	default:
		o.event = first
	}
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
	events, followers := g.events(looks, f), make(map[string]*redis.StringCmd) // of an upstream
	_, err := g.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, look := range looks {
			k := g.l.keys[look.part]
			if found := ids(look.lapsed); len(found) > 0 {
				reads = append(reads, read{found, p.HMGet(ctx, k.runs, found...), parseLease, &f.Lapsed})
			}
			if found := ids(look.pending); len(found) > 0 {
				reads = append(reads, read{found, p.HMGet(ctx, k.waiting, found...), parsePending, &f.Pending})
			}
		}
		for _, e := range events {
			if followers[e.Upstream] == nil {
				followers[e.Upstream] = p.HGet(ctx, g.l.keys[g.l.Partition(e.Upstream)].followers, e.Upstream)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for _, e := range events {
		if err := followers[e.Upstream].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		e.Followers = strings.FieldsFunc(followers[e.Upstream].Val(), func(r rune) bool { return r == ',' })
		f.Events = append(f.Events, e)
	}
	for _, r := range reads {
		if err := r.got.Err(); err != nil {
			return err
		}
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

// events reads the outbox rows that were found; what is none is counted.
func (g *Gaze) events(looks []glance, f *Finding) []Event {
	var all []Event
	for _, look := range looks {
		for _, record := range look.rows() {
			e, err := eventOf(record)
			if err != nil {
				f.Foreign++
				continue
			}
			all = append(all, e)
		}
	}
	return all
}
