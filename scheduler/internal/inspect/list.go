package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Pending, as a Filter's Outcome, lists runs that have not been granted yet.
const Pending = "pending"

// Filter restricts the listed runs; zero fields do not restrict them.
type Filter struct {
	Job     string
	Since   time.Time // by when they ended, in flight by their ticks
	Outcome string    // a jobs.Outcome's, or Pending
	Limit   int       // newest ones
	After   string    // a List's Next
	Recent  bool      // what the last calls have written is enough
}

// List is the runs that a Filter lets through: running runs by their ticks, then ended runs by
// their ends, the newest first.
type List struct {
	Runs          []Run
	Next          string // the place of the last run, where there are more than the Limit
	UnknownFormat int    // rows in an unknown format, of the rows that were read
}

// recentLines is how many lines of Ledger.Recent are read at first.
const recentLines = 8

// List lists runs of some partitions, in a namespace of so many jobs. It reads running runs first,
// so that a run which ends meanwhile is among the recorded ones, and then the newest rows, as many
// as it takes; where there are few jobs, all rows. unread are the errors of histories that could
// not be read.
func (f Filter) List(ctx context.Context, l *ledger.Ledger, parts []int, all int) (list List, unread []error, err error) {
	after, err := placeOf(f.After)
	if err != nil {
		return List{}, nil, err
	}
	open, err := query.InFlightIn(ctx, l, parts)
	if err != nil {
		return List{}, nil, err
	}
	var p *picked
	take := func(h query.JobRows) bool {
		unread = append(unread, HistoryError(h.Job, h.Err))
		list.UnknownFormat += h.UnknownFormat
		noteDead(h.Rows)
		for _, r := range slices.Backward(h.Rows) {
			p.row(r)
		}
		return true
	}
	begin := func() {
		p, unread, list.UnknownFormat = &picked{Filter: f, after: after}, nil, 0
		for k := range open {
			p.lease(&open[k])
		}
	}
	names := []string{f.Job}
	if f.Job == "" {
		for lines := int64(recentLines); f.Limit > 0 && (f.Recent || all > Few); lines *= 4 {
			recent, err := query.ListRecent(ctx, l, parts, lines)
			if err != nil {
				return List{}, nil, err
			}
			begin()
			if err := query.EachNewest(ctx, l, recent, take); err != nil {
				return List{}, unread, err
			}
			if p.enough(recent.Ended) || f.Recent && !recent.More {
				return p.list(list), unread, nil
			}
			if !recent.More {
				break
			}
		}
		if names, err = query.Names(ctx, l, parts); err != nil {
			return List{}, nil, err
		}
		slices.Sort(names)
	}
	begin()
	err = query.EachHistory(ctx, l, names, "", take)
	return p.list(list), unread, err
}

// place orders a list: by the end, ms, which is math.MaxInt64 for running runs, then by the tick,
// ms, both the newest first; then by job and by a key that distinguishes the job's rows.
type place struct {
	at, tick int64
	job, key string
}

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.tick, a.tick), strings.Compare(a.job, b.job), compareKeys(a.key, b.key))
}

// compareKeys puts the runs of shards in their order: their ids are a tick's with .0, .1 and so on.
func compareKeys(a, b string) int {
	a, shardA := cutShard(a)
	b, shardB := cutShard(b)
	return cmp.Or(strings.Compare(a, b), cmp.Compare(shardA, shardB))
}

// cutShard takes the number of a shard off a key; -1 for none.
func cutShard(key string) (rest string, shard int) {
	if at := strings.LastIndexByte(key, '.'); at >= 0 {
		if n, err := strconv.Atoi(key[at+1:]); err == nil && n >= 0 && strconv.Itoa(n) == key[at+1:] {
			return key[:at], n
		}
	}
	return key, -1
}

// String is the form that placeOf reads. The key of a range is escaped: a place without spaces
// needs no quotes in a shell.
func (a place) String() string {
	return fmt.Sprintf("%d,%d,%s,%s", a.at, a.tick, a.job, url.QueryEscape(a.key))
}

// placeOf reads a place; the place of "" is before all.
func placeOf(text string) (a place, err error) {
	if text == "" {
		return a, nil
	}
	f := strings.SplitN(text, ",", 4)
	if len(f) == 4 {
		a.job = f[2]
		if a.key, err = url.QueryUnescape(f[3]); err == nil {
			a.at, err = strconv.ParseInt(f[0], 10, 64)
		}
		if err == nil {
			a.tick, err = strconv.ParseInt(f[1], 10, 64)
		}
	}
	if len(f) < 4 || err != nil {
		return a, fmt.Errorf("%w: list runs: after %q, which is no place in the list; take what the page before named", ledger.ErrRefused, text)
	}
	return a, nil
}

// picked are the runs that a filter lets through, not many more than its Limit.
type picked struct {
	Filter
	after place
	runs  []placed
	full  bool // there are more than Limit runs already, and floor is the last place kept
	floor place
}

type placed struct {
	Run
	place
}

func (p *picked) lease(l *ledger.Run) {
	running := p.Outcome == "" || p.Outcome == jobs.OutcomeRunning.String() || p.Outcome == Pending && l.Pending()
	if running && (p.Job == "" || l.Job == p.Job) && (p.Since.IsZero() || l.Tick >= work.Millis(p.Since)) {
		p.add(placed{Run{Lease: l}, place{math.MaxInt64, l.Tick, l.Job, l.ID}})
	}
}

func (p *picked) row(r ledger.Row) {
	if p.Outcome != "" && p.Outcome != r.Outcome.String() || !p.Since.IsZero() && r.At < work.Millis(p.Since) {
		return
	}
	key := r.Run
	if r.Ranged {
		key = fmt.Sprint(r.Outcome, " ", r.Reason, " ", r.Until)
	}
	p.add(placed{Run{Row: &r}, place{r.At, r.Tick, r.Job, key}})
}

// listSpare is how many runs a list may have too many before it is trimmed.
const listSpare = 256

func (p *picked) add(r placed) {
	if p.After != "" && p.after.compare(r.place) >= 0 || p.full && p.floor.compare(r.place) <= 0 {
		return
	}
	p.runs = append(p.runs, r)
	if p.Limit > 0 && (len(p.runs)-listSpare)/2 >= p.Limit { // twice a huge one would be negative
		p.trim()
	}
}

// trim puts the newest first and drops the runs beyond Limit, except one.
func (p *picked) trim() {
	slices.SortStableFunc(p.runs, func(a, b placed) int { return a.compare(b.place) })
	if p.Limit > 0 && len(p.runs)-1 >= p.Limit {
		clear(p.runs[p.Limit+1:])
		p.runs, p.full = p.runs[:p.Limit+1], true
		p.floor = p.runs[p.Limit].place
	}
}

// enough reports whether no row that ended before an instant, ms, or at it, belongs on the page; 0
// is before all.
func (p *picked) enough(ended int64) bool {
	p.trim()
	return ended == 0 || !p.Since.IsZero() && work.Millis(p.Since) > ended || p.full && p.floor.at > ended
}

// list is the page.
func (p *picked) list(list List) List {
	p.trim()
	shown := p.runs
	if p.full {
		shown = shown[:p.Limit]
		list.Next = shown[p.Limit-1].String()
	}
	for _, r := range shown {
		list.Runs = append(list.Runs, r.Run)
	}
	return list
}
