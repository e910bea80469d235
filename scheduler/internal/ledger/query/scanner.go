package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var sweepScript = ledger.Ship("query/sweep", nil)

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

// ScanResult is the result of a Scan.
type ScanResult struct {
	Late    []Late          // overdue by more than the grace
	Lapsed  []ledger.Run    // until has passed
	Pending []ledger.Run    // may start
	Cancels []ledger.Cancel // cancel flags
	Events  []ledger.Event  // for followers
	// Backfills are the backfills under way.
	Backfills []ledger.Backfill
	// Incarnations are the incarnations of the partitions that were read, "" for a partition that
	// has lost its incarnation or its gate. Lacking names the keys of a partition that have fewer
	// records than another key implies: jobs, due, defs, runs or leases.
	Incarnations  map[int]string
	Lacking       map[int][]string
	UnknownFormat int // records that this version cannot read
}

// EventsMax is how many events of a partition one look reads.
const EventsMax = 64

// Scanner walks the ledger for a sweep. One Scan reads everything that is overdue, up to 2,048 of a
// kind in a partition, and the next Scan goes on behind: jobs that stay overdue because no node
// holds them do not hide other jobs. It is not safe for concurrent use.
type Scanner struct {
	l      *ledger.Ledger
	offset []scanOffset
}

type scanOffset struct {
	late, lapsed, pending, outbox int64
	event                         string // the first event of the last page
	long                          bool   // the outbox has more than a page, as far as is known
}

// NewScanner starts at the beginning of every partition.
func NewScanner(l *ledger.Ledger) *Scanner {
	return &Scanner{l: l, offset: make([]scanOffset, len(l.Keys))}
}

// Scan reads what is overdue by Redis' time now less grace, both in ms, in some partitions, or in
// all without an argument. It takes one round trip and one script call for each partition, as long
// as one page holds everything. Masters of a Cluster are read side by side; with some masters'
// error, the other masters' findings are returned. Scan writes nothing.
func (g *Scanner) Scan(ctx context.Context, now, grace int64, parts ...int) (ScanResult, error) {
	if len(parts) == 0 {
		parts = g.l.All()
	}
	var mu sync.Mutex
	var all ScanResult
	err := g.l.EachReachable(ctx, ledger.NodeQueueTimeout, "sweep", parts, func(ctx context.Context, parts []int) error {
		f, err := g.scan(ctx, now, grace, parts)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			all.add(f)
		}
		return err
	})
	return all, err
}

// add adds the findings of another master.
func (f *ScanResult) add(other ScanResult) {
	f.Late, f.Lapsed, f.Pending = append(f.Late, other.Late...), append(f.Lapsed, other.Lapsed...), append(f.Pending, other.Pending...)
	f.Cancels, f.Events = append(f.Cancels, other.Cancels...), append(f.Events, other.Events...)
	f.Backfills, f.UnknownFormat = append(f.Backfills, other.Backfills...), f.UnknownFormat+other.UnknownFormat
	if f.Incarnations == nil {
		f.Incarnations, f.Lacking = make(map[int]string), make(map[int][]string)
	}
	maps.Copy(f.Incarnations, other.Incarnations)
	maps.Copy(f.Lacking, other.Lacking)
}

// scan is Scan for partitions of one master.
func (g *Scanner) scan(ctx context.Context, now, grace int64, of []int) (ScanResult, error) {
	f := ScanResult{Incarnations: make(map[int]string, len(of)), Lacking: make(map[int][]string)}
	parts := slices.Clone(of)
	for page := 0; page < lookPages && len(parts) > 0; page++ {
		found, err := g.pages(ctx, parts, page == 0, now, grace)
		if err != nil {
			return ScanResult{}, err
		}
		var more []int
		for i, part := range parts {
			again, err := g.note(part, page == 0, found[i], &f)
			if err != nil {
				return ScanResult{}, err
			}
			if again {
				more = append(more, part)
			}
		}
		parts = more
	}
	return f, nil
}

// pages calls the script for a page of each of some partitions.
func (g *Scanner) pages(ctx context.Context, parts []int, first bool, now, grace int64) ([][]any, error) {
	cmds := make([]*redis.Cmd, len(parts))
	ask := func(again bool, add ledger.QueueFunc) error {
		pipe := g.l.Client.Pipeline()
		for i, part := range parts {
			if !again || redisconn.UnknownScript(cmds[i].Err()) {
				keys, args := g.ask(part, first, now, grace)
				cmds[i] = add(ctx, pipe, keys, args...)
			}
		}
		if pipe.Len() == 0 {
			return nil
		}
		_, err := pipe.Exec(ctx)
		return err
	}
	err := ask(false, sweepScript.Queue)
	if redisconn.UnknownScript(err) {
		err = ask(true, sweepScript.QueueSource)
	}
	if err != nil {
		return nil, err
	}
	found := make([][]any, len(parts))
	for i, cmd := range cmds {
		reply, err := cmd.Slice()
		if err == nil && len(reply) != 11 {
			err = fmt.Errorf("%d lists, want 11", len(reply))
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		found[i] = reply
	}
	return found, nil
}

// ask is the script's request for a page of a partition. A kind that was read to its end is not
// read again.
func (g *Scanner) ask(part int, first bool, now, grace int64) (keys []string, args []any) {
	at := g.offset[part]
	from := func(offset int64) string {
		if !first && offset == 0 {
			return ""
		}
		return ledger.Spell(offset)
	}
	a := sweepArgs{
		dueUntil: now - grace, lapsedUntil: now - 1, startUntil: now,
		skipDue: from(at.late), skipLapsed: from(at.lapsed), skipPending: from(at.pending), most: lookMax, mostRows: EventsMax,
	}
	if first {
		a.skipRows = ledger.Spell(at.outbox)
		a.bothEnds = at.long // new events do not wait until the walk comes to them
	}
	values := a.appendTo(nil)
	return sweepScript.In(g.l.Keys[part].Tag, ""), ledger.AppendPlaces(nil, values)
}

// note takes up a page of a partition and reports whether there may be more.
func (g *Scanner) note(part int, first bool, found []any, f *ScanResult) (more bool, err error) {
	late, lapsed, pending := ledger.Texts(found[0]), ledger.Texts(found[1]), ledger.Texts(found[3])
	for i := 0; i+1 < len(late); i += 2 {
		score, err := strconv.ParseFloat(late[i+1], 64)
		if err != nil {
			return false, fmt.Errorf("sweep: cursor of %s: %w", late[i], err)
		}
		f.Late = append(f.Late, Late{Job: late[i], Cursor: int64(score)})
	}
	f.leases(lapsed, found[2], ledger.ParseRun, &f.Lapsed)
	f.leases(pending, found[4], ledger.ParsePending, &f.Pending)
	f.Cancels = append(f.Cancels, cancelsOf(pairs(ledger.Texts(found[5])))...)
	at, rows := &g.offset[part], ledger.Texts(found[6])
	if first {
		at.turn(rows)
		if state := ledger.Texts(found[10]); len(state) == 2 {
			f.Incarnations[part] = state[0]
			if lacking := commaList(state[1]); len(lacking) > 0 {
				f.Lacking[part] = lacking
			}
		}
	}
	f.events(rows, ledger.Texts(found[7]), pairs(ledger.Texts(found[8])))
	f.backfills(ledger.Texts(found[9]))
	at.late, at.lapsed, at.pending = further(at.late, len(late)/2), further(at.lapsed, len(lapsed)), further(at.pending, len(pending))
	return at.late+at.lapsed+at.pending > 0, nil
}

// turn decides where the next scan reads the outbox, one page beside the newest events. It reads
// from the start as long as events there leave. A page that stays is passed over, so that events
// that cannot be delivered yet do not hide other events.
func (o *scanOffset) turn(page []string) {
	first := ""
	o.long = o.outbox > 0 || len(page) == EventsMax
	if len(page) > 0 {
		first = page[0]
	}
	switch stays := first == o.event; {
	case len(page) < EventsMax:
		o.outbox, o.event = 0, ""
	case stays:
		o.outbox, o.event = o.outbox+EventsMax, ""
	default:
		o.event = first
	}
}

// further is the offset behind a full page, and 0 after a page that was not full.
func further(offset int64, found int) int64 {
	if found < lookMax {
		return 0
	}
	return offset + int64(found)
}

// leases adds the records of runs. A run without a record has ended meanwhile.
func (f *ScanResult) leases(runs []string, found any, parse func(run, record string) (ledger.Run, error), into *[]ledger.Run) {
	records, _ := found.([]any)
	for i, record := range records {
		if record == nil || i >= len(runs) {
			continue
		}
		lease, err := parse(runs[i], ledger.Text(record))
		if errors.Is(err, ledger.ErrUnknownFormat) {
			f.UnknownFormat++
			continue
		}
		*into = append(*into, lease)
	}
}

// events adds outbox rows, each once, and counts the unreadable ones.
func (f *ScanResult) events(rows, newest []string, followers map[string]string) {
	for _, row := range newest {
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		e, err := ledger.ParseEvent(row)
		if err != nil {
			f.UnknownFormat++
			continue
		}
		e.Followers = commaList(followers[e.Upstream])
		f.Events = append(f.Events, e)
	}
}

// backfills adds the backfills that are under way, ordered by job.
func (f *ScanResult) backfills(records []string) {
	for _, record := range records {
		b, err := ledger.ParseBackfill(record)
		if err != nil {
			f.UnknownFormat++
			continue
		}
		f.Backfills = append(f.Backfills, b)
	}
	slices.SortFunc(f.Backfills, ledger.ByJob)
}
